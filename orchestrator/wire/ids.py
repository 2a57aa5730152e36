"""Ids: one type per kind of object, and how new ones are made."""

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
"""The pattern of ids. Any URL-safe text is allowed, because clients may choose ids."""

MAX_PERSON_CHARACTERS: Final = 128
PERSON_RULE: Final = "must be 1 to 128 printable characters, without | and without a space at either end"
"""A person's id is written into blocks and headers, in one line, with | as a separator."""

RANDOM_CHARACTERS: Final = 21
"""The length of a NanoID. Its 126 random bits make ids unique and a conversation's id impossible to guess."""

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_CHARACTER_OF_BYTE: Final = _ALPHABET * 4  # 4 times 64 values, so all characters are equally likely


def is_person_id(text: str) -> bool:
    """Whether the text is a valid id of a person."""
    fits = 1 <= len(text) <= MAX_PERSON_CHARACTERS and text == text.strip()
    return fits and text.isprintable() and "|" not in text


class RandomIds:
    """Makes new ids from the system's random numbers. It has no state, so threads and forks are safe."""

    def new(self, prefix: str) -> str:
        """A new NanoID: `prefix` and 21 random URL-safe characters."""
        return prefix + os.urandom(RANDOM_CHARACTERS).translate(_CHARACTER_OF_BYTE).decode("ascii")
