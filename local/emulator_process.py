"""What runs as the local AWS: the emulator with every correction of ``differences`` in place."""

from __future__ import annotations

from local.differences import DIFFERENCES


def main() -> None:
    """Serve until told to end. Refuses to start when a correction does not fit the emulator."""
    from ministack.app import main as serve  # noqa: PLC0415 - reads its settings when imported, not before

    for difference in DIFFERENCES:
        if difference.correction is not None:
            difference.correction()
    serve()


if __name__ == "__main__":
    main()
