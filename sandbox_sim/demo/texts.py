"""The texts of the shop in one language, from texts.toml; another language is another such file."""

import tomllib
from importlib.resources import files
from types import SimpleNamespace

from sandbox_sim.demo.orders import Note


class Texts(SimpleNamespace):
    """The texts; words in braces are filled in by the shop."""

    @classmethod
    def of_file(cls, name: str) -> "Texts":
        """The texts in a file of this folder."""
        return cls(**tomllib.loads(files(__package__).joinpath(name).read_text("utf-8")))

    def note(self, note: Note) -> str:
        """The words of a note."""
        facts = dict(note.facts)
        if "source" in facts:
            facts["source"] = self.sources[facts["source"]]
        words: str = self.notes[note.kind]
        return words.format(**facts)


ENGLISH = Texts.of_file("texts.toml")
