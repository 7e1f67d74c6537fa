"""What an onboarding can do outside: neither provider honours keys, and both can be asked by our reference."""

from typing import Final

from shared.domain.action import EffectClass
from shared.domain.workflow import Tool
from shared.workflows.onboarding.models import OrderArguments, PacketArguments

SEND_WELCOME_PACKET: Final = Tool(
    name="send_welcome_packet",
    description="Post the welcome packet with the documents to sign to a new employee.",
    arguments=PacketArguments,
    effect=EffectClass.IRREVERSIBLE_WRITE,
    fact="welcome_packet_sent",
    can_look_up=True,
    no_undo_because="what is in the post cannot be called back",
)

ORDER_EQUIPMENT: Final = Tool(
    name="order_equipment",
    description="Order the equipment of a new employee's desk.",
    arguments=OrderArguments,
    # What was ordered can be sent back, so an order that provably did not arrive may be sent again.
    effect=EffectClass.REVERSIBLE_WRITE,
    fact="equipment_ordered",
    can_look_up=True,
    no_undo_because="delivered equipment goes back through the returns desk, which takes no requests from programs",
)

TOOLS: Final = {tool.name: tool for tool in (SEND_WELCOME_PACKET, ORDER_EQUIPMENT)}
