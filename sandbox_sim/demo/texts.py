"""The texts of the shop, from texts.toml."""

import tomllib
from importlib.resources import files
from types import SimpleNamespace

from sandbox_sim.demo.orders import Note


class Texts(SimpleNamespace):
    """The texts; words in braces are filled in by the shop."""

    def note(self, note: Note) -> str:
        """The words of a note."""
        facts = dict(note.facts)
        if "source" in facts:
            facts["source"] = self.sources[facts["source"]]
        words: str = self.notes[note.kind]
        return words.format(**facts)


ENGLISH = Texts(**tomllib.loads(files(__package__).joinpath("texts.toml").read_text("utf-8")))
