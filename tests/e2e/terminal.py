"""A terminal that keeps what is written to it, and shows what a person would see."""

from __future__ import annotations

import io
import re

_PART = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])|(.)", re.DOTALL)


class Terminal(io.StringIO):
    """Understands what progress lines and bars need: colours, the cursor, lines that are wiped."""

    def __init__(self):
        super().__init__()
        self.history = [""]
        self.cursor_is_shown = True
        self._rows, self._row, self._column = [[]], 0, 0

    def isatty(self):
        return True

    def write(self, text):
        for part in _PART.finditer(text):
            private, numbers, command, letter = part.groups()
            if letter is not None:
                self._type(letter)
            elif private:
                if numbers == "25":
                    self.cursor_is_shown = command == "h"
            else:
                self._obey(command, int(numbers.split(";")[0] or 0))
        self.history.append("\n".join("".join(row).rstrip() for row in self._rows).rstrip())
        return super().write(text)

    @property
    def shown(self):
        """What is seen now."""
        return self.history[-1]

    @property
    def cursor(self):
        """Row and column, from 0 on."""
        return self._row, self._column

    def _type(self, letter):
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._row, self._column = self._row + 1, 0
            self._rows += [[]] * (self._row == len(self._rows))
        else:
            row = self._rows[self._row] = self._rows[self._row].copy()
            row += " " * (self._column + 1 - len(row))
            row[self._column] = letter
            self._column += 1

    def _obey(self, command, number):
        if command == "A":
            self._row = max(0, self._row - max(1, number))
        elif command == "K":
            assert number == 2, "the whole line"
            self._rows[self._row] = []
        else:
            assert command == "m", f"what is {command}?"
