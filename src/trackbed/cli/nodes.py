"""`trackbed nodes`: machines and cards of the pool."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say, word

if TYPE_CHECKING:
    from trackbed.wire.runs import NodeView


def nodes() -> None:
    with client() as api:
        found = api.pool.nodes()
    if output.emit_json(found):
        return
    head = [
        say(f"cli.word.{name}") for name in ("node", "state", "card", "kind", "memory", "card_state", "run", "space")
    ]
    output.table(
        head,
        [_row(node, card) for node in found for card in node.cards]
        or [[node.name, node.state, *[""] * 6] for node in found],
    )
    for node in found:
        held = Counter(str(card.get("state", "")) for card in node.cards)
        output.note(
            f"{node.name}: " + ", ".join(f"{word(f'card_state.{name}', name)} {count}" for name, count in held.items())
        )


def _row(node: "NodeView", card: dict[str, Any]) -> list[object]:
    memory = card.get("memory_bytes") or 0
    state = str(card.get("state", ""))
    return [node.name, word(f"node_state.{node.state}", node.state), card.get("index", ""), card.get("kind", ""), format_size(memory) if memory else "",
            word(f"card_state.{state}", state), card.get("run", ""), card.get("space", "")]  # fmt: skip
