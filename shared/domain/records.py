"""The base of every stored value: frozen, strict, and closed to unknown fields."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A value that is stored or crosses a boundary. Change makes a new value; surprise is an error."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)
