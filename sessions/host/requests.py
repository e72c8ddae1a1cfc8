"""What clients send, read with care: each value of the type it must have, else the connection ends."""

from __future__ import annotations

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


def environment_of(message: JsonObject) -> Mapping[str, str]:
    found = value_of(message, "environment", dict)
    for name, value in found.items():
        if not name or "=" in name or "\0" in name or not isinstance(value, str) or "\0" in value:
            raise WireFault("no environment")
    return found


def operation_of(message: JsonObject) -> Operation:
    """ArgumentFault for an operation that is none, or not the host's to carry out."""
    operation = declared(value_of(message, "operation", str))
    if not needs_hold(operation):
        raise ArgumentFault(f"{operation.id} needs no host", "it is carried out where it is asked for")
    return operation
