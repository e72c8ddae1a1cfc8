"""What the user's ssh configuration comes to, and what is said when it comes to nothing."""

from __future__ import annotations

import getpass
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ArgumentFault
from core.targets.ssh.address import Address, parse_address
from core.targets.ssh.faults import SshFault
from core.targets.ssh.stages import FAILURE_STAGE, REMEDY, TITLE, failure_stage
from core.targets.ssh.user_config import Hop, effective, ignored_options
from core.words import STAGES
from tests.remote.conftest import Serve
from tests.remote.connecting import fault_of, shareable
from tests.remote.sshd import User


def configured(user: User, text: str) -> None:
    user.config.write_text(text)


def hops(user: User, target: str = "ssh:box") -> tuple[Hop, ...]:
    return effective(parse_address(target), user.config).hops


def refused(user: User, target: str = "ssh:box") -> SshFault:
    with pytest.raises(SshFault) as caught:
        hops(user, target)
    assert caught.value.stage == "config"
    return shareable(caught.value, user)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh:box", Address("box")),
        ("ssh:me@box:2222", Address("box", "me", 2222)),
        ("ssh:box.example.org:22", Address("box.example.org", "", 22)),
        ("ssh://me@box", Address("box", "me")),
        ("ssh:[fe80::1%eth0]:2222", Address("fe80::1%eth0", "", 2222)),
        ("ssh:fe80::1", Address("fe80::1")),
        ("ssh:me@corp@box", Address("box", "me@corp")),
        ("ssh:gpu_box-1", Address("gpu_box-1")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("box", "no SSH target"), ("ssh:", "no host"), ("ssh:@box", "user name before @ is empty"),
        ("ssh:box:0", "no port"), ("ssh:box:65536", "no port"), ("ssh:box:", "no port"),
        ("ssh:box:ssh", "no port"), ("ssh:box:²", "no port"), ("ssh:-oProxyCommand=x", "no host name"),
        ("ssh:-l@box", "no user name"), ("ssh:a b", "no host name"), ("ssh:$(id)", "no host name"),
        ("ssh:[::1", "no matching bracket"), ("ssh:[::1]22", "no matching bracket"),
        ("ssh:a;b", "no host name"), ("ssh:a\nb", "no host name"), ("ssh:box\0", "no host name"),
    ],
)  # fmt: skip
def test_addresses_that_are_none(text: str, why: str) -> None:
    with pytest.raises(ArgumentFault, match=why) as caught:
        parse_address(text)
    assert "ssh:" in caught.value.hint


@settings(deadline=None)
@given(st.text(max_size=30))
def test_an_address_is_read_back_as_written_or_refused(text: str) -> None:
    try:
        address = parse_address(f"ssh:{text}")
    except ArgumentFault:
        return
    assert parse_address(str(address)) == address
    assert not address.host.startswith("-") and not address.user.startswith("-")
    assert address.host.isprintable() and " " not in address.host


def test_every_option_that_counts_is_read(user: User) -> None:
    configured(
        user,
        "Host box\n HostName box.example.org\n Port 2222\n User someone\n IdentityFile ~/.ssh/one\n"
        " IdentityFile /keys/%r\n IdentitiesOnly yes\n HostKeyAlias the-box\n ConnectTimeout 7\n"
        " UserKnownHostsFile ~/known /other\n ServerAliveInterval 11\n ServerAliveCountMax 2\n"
        "Host *\n Port 1\n",
    )
    (hop,) = hops(user)
    assert (hop.name, hop.host, hop.port, hop.user) == ("box", "box.example.org", 2222, "someone")
    assert hop.key_files == (user.folder / ".ssh/one", Path("/keys/someone"))
    assert hop.identities_only and hop.key_alias == "the-box"
    assert hop.known_hosts[:2] == (user.folder / "known", Path("/other"))
    assert (hop.connect_timeout_s, hop.keepalive_s, hop.keepalive_count) == (7, 11, 2)


def test_what_is_written_with_the_target_overrules_the_configuration(user: User) -> None:
    configured(user, "Host box\n Port 2222\n User someone\n")
    (hop,) = hops(user, "ssh:me@box:99")
    assert (hop.user, hop.port, hop.asked) == ("me", 99, Address("box", "me", 99))


def test_a_host_without_a_configuration_has_the_usual_values(user: User) -> None:
    (hop,) = hops(user, "ssh:elsewhere")
    assert (hop.host, hop.port, hop.user) == ("elsewhere", 22, getpass.getuser())
    assert (hop.keepalive_s, hop.keepalive_count, hop.connect_timeout_s) == (5.0, 3, None)
    assert hop.known_hosts[0] == user.folder / ".ssh/known_hosts"
    assert hop.key_files == () and hop.present_keys == ()


def test_a_key_given_with_the_target_is_the_only_one_there_and_none_on_the_way(user: User) -> None:
    configured(user, "Host box\n ProxyJump gate\n IdentityFile /one\n")
    gate, box = effective(Address("box"), user.config, Path("/given")).hops
    assert box.key_files == (Path("/given"),) and box.identities_only
    assert gate.key_files == ()


def test_includes_and_matches_are_followed(user: User) -> None:
    (user.folder / ".ssh" / "more").write_text("Host b*\n ProxyJump gate\n")
    configured(
        user,
        "Include more\nMatch originalhost box exec true\n Port 3\n"
        "Match originalhost box exec false\n Port 4\nMatch final\n User late\n",
    )
    gate, box = hops(user)
    assert (gate.name, box.port, box.user) == ("gate", 3, "late")


def test_a_list_of_jump_hosts_is_taken_in_its_order(user: User) -> None:
    configured(
        user,
        "Host box\n ProxyJump me@gate:2200,ssh://yard\nHost gate\n ProxyJump door\n HostName gate.example\n"
        "Host yard\n ProxyJump never\n Port 5\nHost door\n ProxyJump none\n",
    )
    assert [(hop.name, hop.host, hop.port) for hop in hops(user)] == [
        ("door", "door", 22), ("gate", "gate.example", 2200), ("yard", "yard", 5), ("box", "box", 22),
    ]  # fmt: skip
    assert hops(user)[1].user == "me"


def test_jump_hosts_in_a_circle(user: User) -> None:
    configured(user, "Host box\n ProxyJump gate\nHost gate\n ProxyJump box\n")
    assert refused(user).sentence == "box: its ProxyJump leads in a circle (box → gate → box)"


def test_a_jump_host_that_cannot_be_read(user: User) -> None:
    configured(user, "Host box\n ProxyJump gate:port\n")
    assert refused(user).sentence == "box: its ProxyJump cannot be read: 'port' is no port (1 to 65535)"


@pytest.mark.parametrize("line", ["Port many", "IdentitiesOnly maybe", "HostName", 'User "open'])
def test_a_line_that_cannot_be_read(user: User, line: str) -> None:
    configured(user, f"Host box\n {line}\n")
    fault = refused(user)
    assert fault.sentence == "box: the ssh configuration cannot be read at line 2 of its file config"
    assert str(user.config) in fault.details


def test_a_configuration_that_is_no_text(user: User) -> None:
    user.config.write_bytes(b"Host \xff\xfe\n")
    assert refused(user).sentence == "box: the ssh configuration cannot be read"


@pytest.mark.parametrize(
    "option",
    ["IdentityFile ~nobody-here/key", "UserKnownHostsFile ~nobody-here/known", "Include ~nobody-here/x"],
)
def test_a_home_folder_that_nobody_knows(user: User, option: str) -> None:
    configured(user, f"Host box\n {option}\n")
    fault = refused(user)
    assert fault.sentence == "box: the ssh configuration cannot be read" and "set HOME" in fault.hint


def test_without_a_home_folder_there_is_no_way_in(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(SshFault) as caught:
        effective(Address("box"))
    assert caught.value.stage == "config" and "set HOME" in caught.value.hint


def test_a_configuration_file_that_is_missing(user: User) -> None:
    user.config.unlink()
    assert refused(user).sentence == "box: the ssh configuration file is not there"
    assert effective(Address("box")).hops[0].host == "box"  # the usual one need not be there


def test_a_certificate_that_is_missing_is_told_before_anybody_is_called(user: User, closed_port: int) -> None:
    user.writes("box", closed_port, "CertificateFile /no/such/certificate")
    fault = fault_of(user)
    assert fault.stage == "config"
    assert fault.sentence == (
        "box: its ssh configuration cannot be used: a file or program that it names is not there"
    )
    assert "/no/such/certificate" in fault.details


def test_a_value_that_cannot_be(user: User, closed_port: int) -> None:
    user.writes("box", closed_port, "ServerAliveInterval -1")
    fault = fault_of(user)
    assert fault.stage == "config"
    assert fault.sentence == "box: its ssh configuration cannot be used: a value is not known"


def test_no_common_algorithm(user: User, serve: Serve) -> None:
    server = serve("Ciphers aes256-ctr")
    user.trusts(server)
    user.writes("box", server.port, "Ciphers aes128-ctr")
    fault = fault_of(user)
    assert fault.stage == "connect"
    assert fault.sentence == "box shares no algorithm with this client"


def test_options_that_are_not_obeyed_are_named_for_this_host_only(user: User) -> None:
    configured(
        user,
        "Host box\n StrictHostKeyChecking no\n ControlMaster auto\n ControlPath x\n ForwardAgent yes\n"
        " PKCS11Provider /lib\n Hostname box.example\n Unheardof thing\nHost other\n LocalForward 1 a:2\n"
        "Host *\n StrictHostKeyChecking ask\n RemoteCommand tmux\n ForwardX11Trusted no\n",
    )
    assert ignored_options(Address("box"), user.config) == (
        "StrictHostKeyChecking", "ControlMaster", "ControlPath", "PKCS11Provider", "unheardof",
        "ForwardAgent", "RemoteCommand",
    )  # fmt: skip
    assert ignored_options(Address("plain"), user.config) == ("StrictHostKeyChecking", "RemoteCommand")
    user.config.unlink()
    assert ignored_options(Address("box")) == ()


def test_the_library_is_loaded_only_to_connect() -> None:
    program = (
        "import sys\n"
        "import core.targets.ssh.connect, core.targets.ssh.places_file, core.targets.ssh.stages\n"
        "print([name for name in ('asyncssh', 'cryptography') if name in sys.modules])\n"
    )
    told = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=Path(__file__).parents[2])
    assert told == "[]\n"


def test_every_stage_has_a_coarse_word_a_title_and_a_remedy() -> None:
    for table in (FAILURE_STAGE, TITLE, REMEDY):
        assert tuple(table) == STAGES and all(table.values())
    assert set(FAILURE_STAGE.values()) == {"configuration", "ssh", "disk", "gpu", "remote"}
    assert (failure_stage("config"), failure_stage("auth"), failure_stage("scratch")) == (
        "configuration", "ssh", "disk",
    )  # fmt: skip
