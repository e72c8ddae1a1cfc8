"""Host keys: always checked, asked about on a terminal, never added silently."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from core.targets.ssh.host_keys import HostKeyQuestion
from tests.remote.conftest import Serve
from tests.remote.connecting import (
    SPOKEN,
    answering,
    connected,
    fault_of,
    heard,
    says_hello,
    wait_until_gone,
)
from tests.remote.sshd import Server, User, make_key

pytestmark = pytest.mark.usefixtures("nothing_stays_open")
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def test_an_unknown_host_is_refused_where_nobody_can_be_asked(user: User, serve: Serve) -> None:
    server = serve()
    user.writes("box", server.port)
    fault = fault_of(user)
    assert fault.stage == "hostkey"
    assert fault.sentence.startswith("box shows a host key that is not known here: SHA256:")
    assert FINGERPRINT.search(fault.sentence)
    assert user.known_hosts.read_text() == ""
    wait_until_gone(server)
    assert "Accepted" not in server.log.read_text()


def test_a_person_who_says_yes_is_asked_once(user: User, serve: Serve, keys: Path) -> None:
    server = serve()
    user.writes("box", server.port)
    user.known_hosts.write_text("# no newline at the end")
    asked: list[HostKeyQuestion] = []
    assert heard(user, ask=answering(True, asked)) == SPOKEN
    (question,) = asked
    assert (question.target, question.hop, question.algorithm) == ("box", "box", "ssh-ed25519")
    assert FINGERPRINT.fullmatch(question.fingerprint) and question.kept_in == user.known_hosts
    assert user.known_hosts.read_text() == f"# no newline at the end\n{server.known_hosts_line}"
    assert heard(user, ask=answering(False, asked)) == SPOKEN
    assert len(asked) == 1


def test_a_person_who_says_no(user: User, serve: Serve) -> None:
    server = serve()
    user.writes("box", server.port)
    fault = fault_of(user, ask=answering(False, []))
    assert fault.stage == "hostkey" and "not known here" in fault.sentence
    assert user.known_hosts.read_text() == ""


def test_a_first_known_hosts_file_is_made_for_the_user_alone(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts = user.folder / "new" / "known_hosts"
    user.writes("box", server.port)
    assert heard(user, ask=answering(True, [])) == SPOKEN
    assert user.known_hosts.read_text() == server.known_hosts_line
    assert user.known_hosts.stat().st_mode & 0o777 == 0o600
    assert user.known_hosts.parent.stat().st_mode & 0o777 == 0o700


def test_a_changed_key_is_refused_without_a_question(user: User, serve: Serve) -> None:
    asked: list[HostKeyQuestion] = []
    server = serve()
    user.trusts(server)
    kept = user.known_hosts.read_text()
    other = serve(host_key="other_host")
    user.known_hosts.write_text(kept.replace(str(server.port), str(other.port)))
    user.writes("box", other.port)
    before = user.known_hosts.read_text()
    fault = fault_of(user, ask=answering(True, asked))
    assert fault.stage == "hostkey"
    assert fault.sentence.startswith("box shows another host key than before: SHA256:")
    assert len(set(FINGERPRINT.findall(fault.sentence))) == 2
    assert asked == [] and user.known_hosts.read_text() == before
    assert f"[127.0.0.1]:{other.port}" in fault.details
    assert "Accepted" not in other.log.read_text()


def test_a_key_of_another_kind_than_the_one_on_record(user: User, serve: Serve, tmp_path: Path) -> None:
    server = serve()
    kind, key = make_key(tmp_path / "other", "ecdsa").with_suffix(".pub").read_text().split()[:2]
    user.known_hosts.write_text(f"[127.0.0.1]:{server.port} {kind} {key}\n")
    user.writes("box", server.port)
    fault = fault_of(user, ask=answering(True, []))
    assert fault.stage == "hostkey"
    assert fault.sentence.startswith("box shows another host key than before")
    assert len(set(FINGERPRINT.findall(fault.sentence))) == 2


def test_a_revoked_key_is_refused_without_a_question(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts.write_text(f"@revoked {server.known_hosts_line}")
    user.writes("box", server.port)
    asked: list[HostKeyQuestion] = []
    fault = fault_of(user, ask=answering(True, asked))
    assert fault.stage == "hostkey" and "revoked" in fault.sentence and asked == []


def test_a_key_known_for_the_address_says_nothing_about_the_name(user: User, serve: Serve) -> None:
    server = serve()
    user.trusts(server)
    user.writes("box", server.port, "HostName localhost")
    assert fault_of(user).stage == "hostkey"


def test_a_key_alias_is_the_name_that_counts(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts.write_text(server.known_hosts_line.replace(f"[127.0.0.1]:{server.port}", "the-box"))
    user.writes("box", server.port, "HostKeyAlias the-box")
    assert heard(user) == SPOKEN


def test_checking_cannot_be_switched_off(user: User, serve: Serve) -> None:
    server = serve()
    user.writes("box", server.port, "StrictHostKeyChecking no", "UserKnownHostsFile none")
    assert fault_of(user).stage == "hostkey"


def test_a_key_that_cannot_be_kept_counts_for_this_connection_and_is_said(user: User, serve: Serve) -> None:
    server = serve()
    user.writes("box", server.port, "UserKnownHostsFile /dev/null")
    asked: list[HostKeyQuestion] = []
    connection = connected(user, says_hello, ask=answering(True, asked))
    assert asked[0].kept_in is None
    assert connection.notes == ("the accepted host key is not kept: the configuration names no file for it",)


@pytest.fixture
def certified(serve: Serve, keys: Path, tmp_path: Path) -> tuple[Server, str]:
    """A server whose host key an authority has signed, and the authority's public key."""
    authority = make_key(tmp_path / "authority")
    for suffix in ("", ".pub"):
        shutil.copy(keys / f"host{suffix}", tmp_path / f"signed{suffix}")
    subprocess.run(
        ["ssh-keygen", "-qs", authority, "-I", "box", "-hn", "127.0.0.1", tmp_path / "signed.pub"],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    server = serve(f"HostCertificate {tmp_path / 'signed-cert.pub'}")
    return server, " ".join(authority.with_suffix(".pub").read_text().split()[:2])


def test_a_host_certificate_of_a_known_authority(user: User, certified: tuple[Server, str]) -> None:
    server, authority = certified
    user.known_hosts.write_text(f"@cert-authority [127.0.0.1]:* {authority}\n")
    user.writes("box", server.port)
    assert heard(user) == SPOKEN


def test_a_certificate_of_nobody_known_leaves_the_question_about_the_key(
    user: User, certified: tuple[Server, str]
) -> None:
    server, _ = certified
    user.writes("box", server.port)
    asked: list[HostKeyQuestion] = []
    assert heard(user, ask=answering(True, asked)) == SPOKEN
    assert len(asked) == 1 and user.known_hosts.read_text() == server.known_hosts_line


def test_a_certificate_of_the_wrong_authority_is_refused(
    user: User, certified: tuple[Server, str], keys: Path
) -> None:
    server, _ = certified
    other = " ".join((keys / "stranger.pub").read_text().split()[:2])
    user.known_hosts.write_text(f"@cert-authority [127.0.0.1]:* {other}\n")
    user.writes("box", server.port)
    assert fault_of(user, ask=answering(True, [])).stage == "hostkey"


def test_a_line_that_cannot_be_read_trusts_nothing_and_breaks_nothing(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts.write_text(f"nonsense\n|1|x|y ssh-ed25519 AAAA\n\xff\n{server.known_hosts_line}")
    user.writes("box", server.port)
    assert heard(user) == SPOKEN


def test_a_named_known_hosts_file_that_is_missing(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts = user.folder / "missing"
    user.writes("box", server.port)
    fault = fault_of(user)
    assert fault.stage == "config"
    assert "known hosts" in fault.sentence and fault.sentence.startswith("box: ")


def test_a_known_hosts_file_that_is_a_pipe_is_not_waited_for(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts.unlink()
    os.mkfifo(user.known_hosts)
    user.writes("box", server.port)
    assert fault_of(user).stage == "hostkey"
