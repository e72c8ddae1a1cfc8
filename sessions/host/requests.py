"""What clients send, read with care: each value of the type it must have, else the connection ends."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TypeVar

from core.errors import ArgumentFault, KerneldeckError
from core.operations.declaration import Operation
from core.version import VERSION
from core.words import JsonObject
from sessions.binding import declared, needs_hold
from sessions.host.codec import from_json
from sessions.host.wire import PROTOCOL, Hello, HostFault, WireFault

T = TypeVar("T")


def hello_in(message: JsonObject) -> Hello:
    try:
        return from_json(Hello, message.get("hello"))
    except ValueError:
        raise WireFault("no greeting") from None


def refusal_of(hello: Hello) -> KerneldeckError | None:
    """Why this client cannot be served; None when it can."""
    if hello.protocol == PROTOCOL and hello.version == VERSION:
        return None
    return HostFault(
        f"the host of this workspace is Kerneldeck {VERSION} (protocol {PROTOCOL}), "
        f"and this client {hello.version} (protocol {hello.protocol})",
        "stop it with `kerneldeck host stop`, then try again",
    )


def value_of(message: JsonObject, name: str, kind: type[T]) -> T:
    value = message.get(name)
    if not isinstance(value, kind):
        raise WireFault(f"{name} is no {kind.__name__}")
    return value


def number_of(message: JsonObject, name: str) -> float | None:
    """None where nothing is said."""
    value = message.get(name)
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise WireFault(f"{name} is no number") from None
    if math.isnan(number):
        raise WireFault(f"{name} is no number")
    return number


def folder_of(message: JsonObject, name: str) -> str:
    """A path that the system can be asked about."""
    value = value_of(message, name, str)
    if not _is_system_text(value):
        raise WireFault(f"{name} is no path")
    return value


def environment_of(message: JsonObject) -> Mapping[str, str]:
    found = value_of(message, "environment", dict)
    for name, value in found.items():
        if not name or "=" in name or not _is_system_text(name) or not _is_system_text(value):
            raise WireFault("no environment")
    return found


def _is_system_text(value: object) -> bool:
    """Whether it is a text that can be a name or a variable of this system."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def operation_of(message: JsonObject) -> Operation:
    """ArgumentFault for an operation that is none, or not the host's to carry out."""
    operation = declared(value_of(message, "operation", str))
    if not needs_hold(operation, value_of(message, "arguments", dict)):
        raise ArgumentFault(f"{operation.id} needs no host", "it is carried out where it is asked for")
    return operation
