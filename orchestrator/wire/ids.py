"""Identifiers: what each one names has a type of its own, and new ones are random."""

import os
from typing import Final, NewType

ConversationId = NewType("ConversationId", str)
MessageId = NewType("MessageId", str)
SentenceId = NewType("SentenceId", str)
MemoryId = NewType("MemoryId", str)
TraceId = NewType("TraceId", str)
ToolUseId = NewType("ToolUseId", str)
NoteId = NewType("NoteId", str)
ErrorId = NewType("ErrorId", str)
PersonId = NewType("PersonId", str)

CONVERSATION: Final = "conv_"
MESSAGE: Final = "msg_"
SENTENCE: Final = "sent_"
MEMORY: Final = "mem_"
TRACE: Final = "trace_"
TOOL_USE: Final = "tool_"
NOTE: Final = "note_"
ERROR: Final = "err_"
AUDIO: Final = "audio_"

ID_PATTERN: Final = r"^[A-Za-z0-9._~-]{1,128}$"
"""What is accepted as an id: any URL-safe text, so that clients may bring ids of their own making."""

MOST_OF_A_PERSON: Final = 128
PERSON_RULE: Final = "must be 1 to 128 printable characters, without | and without a space at either end"
"""Who somebody is stands in blocks and headers, a line each, where | parts one thing from the next."""

RANDOM_CHARACTERS: Final = 21
"""A NanoID's length: 126 random bits, so that ids never meet and a conversation's cannot be guessed."""

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_CHARACTER_OF_BYTE: Final = _ALPHABET * 4  # a byte has 4 times 64 values: no character is likelier


def names_a_person(text: str) -> bool:
    """Whether that can be somebody's id."""
    fits = 1 <= len(text) <= MOST_OF_A_PERSON and text == text.strip()
    return fits and text.isprintable() and "|" not in text


class RandomIds:
    """New identifiers from the system's randomness. There is no state that threads or forks could share."""

    def new(self, prefix: str) -> str:
        """A fresh NanoID of 21 URL-safe characters behind `prefix`."""
        return prefix + os.urandom(RANDOM_CHARACTERS).translate(_CHARACTER_OF_BYTE).decode("ascii")
