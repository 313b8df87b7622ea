"""The inboxes of the memory store: each is limited in messages, and all together in bytes."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping

from sandbox_sim.domain.callbacks import inbox
from sandbox_sim.domain.callbacks.inbox import InboxMessage

# A message and its number among those of all inboxes; the smallest number is the oldest.
PlacedMessage = tuple[int, InboxMessage]
Boxes = Mapping[str, deque[PlacedMessage]]


class Inboxes:
    """Messages by inbox. Where all together are too large, the oldest of all is removed.

    boxes: the part that a snapshot stores.
    """

    def __init__(self, boxes: Boxes | None = None) -> None:
        self.boxes: dict[str, deque[PlacedMessage]] = defaultdict(deque, boxes or {})
        self._index()

    def newest_first(self, name: str) -> Iterator[InboxMessage]:
        """The messages of an inbox."""
        return (message for _, message in reversed(self.boxes.get(name, ())))

    def add(self, name: str, place: int, message: InboxMessage) -> Callable[[], None]:
        """Add a message and remove the oldest ones that exceed a limit; returns a rollback
        function.

        place: a number larger than any before.
        """
        removed: list[tuple[str, PlacedMessage]] = []
        if len(self.boxes.get(name, ())) >= inbox.KEPT_INBOX_MESSAGES:
            removed.append((name, self._remove_oldest(name)))
        self.boxes[name].append((place, message))
        self._names[place] = name
        self._size += inbox.size_of(message)
        while self._size > inbox.KEPT_INBOX_BYTES:
            oldest = next(iter(self._names.values()))
            removed.append((oldest, self._remove_oldest(oldest)))

        def undo() -> None:
            for each, placed in reversed(removed):
                self.boxes[each].appendleft(placed)
            self.boxes[name].pop()  # the message itself, which is the newest of its inbox
            if not self.boxes[name]:
                del self.boxes[name]
            self._index()

        return undo

    def clear(self, name: str) -> tuple[int, Callable[[], None]]:
        """Empty an inbox; returns the number of its messages and a rollback function."""
        box = self.boxes.pop(name, deque())
        for place, message in box:
            del self._names[place]
            self._size -= inbox.size_of(message)

        def undo() -> None:
            if box:
                self.boxes[name] = box
                self._index()

        return len(box), undo

    def _remove_oldest(self, name: str) -> PlacedMessage:
        place, message = placed = self.boxes[name].popleft()
        if not self.boxes[name]:
            del self.boxes[name]
        del self._names[place]
        self._size -= inbox.size_of(message)
        return placed

    def _index(self) -> None:
        """Compute again the order of all messages and their size in bytes."""
        placed = [(place, name) for name, box in self.boxes.items() for place, _ in box]
        self._names: OrderedDict[int, str] = OrderedDict(sorted(placed))
        self._size = sum(
            inbox.size_of(message) for box in self.boxes.values() for _, message in box
        )
