"""The delta sync: what arrives is what was there, what is there already is not sent, nothing leads out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from core.errors import TargetFault
from core.targets.ssh.local_tree import FileHashes, tree_of
from core.targets.ssh.remote_sync import RemoteFile, RemoteSync, RemoteTree
from core.targets.ssh.remote_trials import RemoteTrial, RemoteTrials, _fields
from tests.remote.agents import NONCE, PYTHON_FOLDER, Held, Running, agent, most_resident_kib, run

LISTING = """
import hashlib, json, os
rows = []
for folder, inside, names in os.walk(b"."):
    if not inside and not names:
        rows.append([os.fsdecode(folder[2:]), "folder", 0])
    for name in names:
        path = os.path.join(folder, name)
        content = open(path, "rb").read()
        mode = os.lstat(path).st_mode
        rows.append([os.fsdecode(path[2:]), hashlib.sha256(content).hexdigest(), mode & 0o777])
print(json.dumps(sorted(rows)))
"""


def listing(there: Running, *trees: RemoteTree, **more: Any) -> RemoteTrial:
    """A trial that prints what stands in its folder."""
    return RemoteTrial(
        ("python3", "-X", "utf8", "-c", LISTING), 30.0, trees, NONCE, path_first=PYTHON_FOLDER, **more
    )


async def found(trials: RemoteTrials, trial: RemoteTrial, folder: Path) -> list[list[Any]]:
    collected = await trials.run(trial, folder)
    assert collected.ended.clean, (folder / "stderr").read_text()
    rows: list[list[Any]] = json.loads((folder / "stdout").read_text())
    return rows


def expected(tree: RemoteTree) -> list[list[Any]]:
    return sorted([file.path, file.sha256, file.mode] for file in tree.files)


def test_a_folder_arrives_as_it_is(tmp_path: Path) -> None:
    """Odd names, bytes that are no UTF-8, mode bits, empty files and folders, a link that stays inside."""
    root = tmp_path / "ws"
    for name, mode in (("a.py", 0o644), ("run me.sh", 0o755), ("sub/é\n.txt", 0o600), ("sub/deep/-x", 0o640)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(mode)
    Path(os.fsdecode(bytes(root) + b"/caf\xe9")).write_bytes(b"")
    (root / "empty" / "folder").mkdir(parents=True)
    (root / "link").symlink_to("a.py")

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree, contents = tree_of(root, FileHashes())
            trials = RemoteTrials(there.link, RemoteSync(there.link, contents))
            rows = await found(trials, listing(there, tree), tmp_path / "1")
            assert rows == sorted([*expected(tree), ["empty/folder", "folder", 0]])
            assert {"caf\udce9", "sub/é\n.txt", "link"} < {row[0] for row in rows}

    run(main())


def test_a_warm_trial_with_a_changed_file_is_one_request(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            files = {f"{number}.py": b"%d" % number for number in range(5)}
            await there.trials.run(listing(there, there.held.tree(files)), tmp_path / "1")
            for text in (b"edited", b"again!"):
                tree = there.held.tree({**files, "1.py": text})
                before = there.channel.writes
                assert await found(there.trials, listing(there, tree), tmp_path / text.decode()) == expected(
                    tree
                )
                assert there.channel.writes == before + 1

    run(main())


def test_files_that_are_gone_or_new_are_gone_or_new_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            for number, names in enumerate((("a", "b/c"), ("a",), ("a", "b", "d/e/f"), ("z",))):
                tree = there.held.tree({name: name.encode() for name in names})
                assert await found(there.trials, listing(there, tree), tmp_path / str(number)) == expected(
                    tree
                )

    run(main())


def test_large_contents_are_asked_for_and_sent_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            await there.trials.run(listing(there, there.held.tree({"a": b"a"})), tmp_path / "0")
            large = there.held.tree({"a": b"a", "large": os.urandom(3 << 20)})
            sent = []
            for number in (1, 2):
                before = there.channel.sent_bytes
                rows = await found(there.trials, listing(there, large), tmp_path / str(number))
                assert [row[:2] for row in rows] == [row[:2] for row in expected(large)]
                sent.append(there.channel.sent_bytes - before)
            assert sent[0] > 3 << 20 and sent[1] < 4000

    run(main())


def test_two_thousand_files_arrive_and_unchanged_ones_are_named_by_one_hash(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            files = {f"d{number % 100}/f{number}": b"%d" % number * 100 for number in range(2000)}
            tree = there.held.tree(files)
            rows = await found(there.trials, listing(there, tree), tmp_path / "1")
            assert [row[:2] for row in rows] == [row[:2] for row in expected(tree)]
            assert {row[2] for row in rows} == {0o444}  # links to what is kept
            before = there.channel.sent_bytes
            tree = there.held.tree({**files, "d7/f7": b"edited"})
            rows = await found(there.trials, listing(there, tree), tmp_path / "2")
            assert ["d7/f7", hashlib.sha256(b"edited").hexdigest(), 0o444] in rows
            assert there.channel.sent_bytes - before < 4000

    run(main())


def test_a_file_of_200_mb_passes_through_little_memory(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    with (root / "large").open("wb") as file:
        file.truncate(200_000_000)

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree, contents = tree_of(root, FileHashes())
            trials = RemoteTrials(there.link, RemoteSync(there.link, contents))
            trial = RemoteTrial(("stat", "-c", "%s", "large"), 30.0, (tree,), NONCE)
            await trials.run(trial, tmp_path / "1")
            assert (tmp_path / "1" / "stdout").read_text() == "200000000\n"
            assert most_resident_kib(there.process.pid) < 60_000

    run(main())


def test_a_content_that_is_not_its_hash_is_refused_and_not_kept(tmp_path: Path) -> None:
    """A file that changed while it was sent; small inside the request, or in the stream."""

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            await there.trials.run(listing(there, there.held.tree({"a": b"a"})), tmp_path / "0")
            for content in (b"right", b"R" * (2 << 20)):
                tree = there.held.tree({"a": content})
                there.held.by_hash[tree.files[0].sha256] = b"wrong" + content[5:]
                with pytest.raises(TargetFault, match="another content than its hash says") as caught:
                    await there.trials.run(listing(there, tree), tmp_path / "1")
                assert caught.value.stage == "sync"
                assert (await there.link.request("kept", {}, 10))["blob_files"] == 1
                there.held.by_hash[tree.files[0].sha256] = content
                assert (await there.trials.run(listing(there, tree), tmp_path / "2")).ended.clean
                await there.link.request("clean", {"most_bytes": 0, "trials_older_than_s": 0}, 10)
                there.trials.sync = RemoteSync(there.link, there.held)
                await there.trials.run(listing(there, there.held.tree({"a": b"a"})), tmp_path / "0")

    run(main())


LEADING_OUT = ["../out", "/tmp/out", "a/../../out", "", ".", "a//b", "a\0b"]


@pytest.mark.parametrize("field", ["files", "folders", "set", "protected", "wanted", "drop"])
def test_names_that_lead_out_are_refused_there(tmp_path: Path, field: str) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree = there.held.tree({"ok": b"ok"})
            sync = RemoteSync(there.link, there.held)
            await sync.offer(tree)
            for name in LEADING_OUT:
                with pytest.raises(TargetFault, match="could lead out") as caught:
                    await ask(there, sync, tree, field, name)
                assert caught.value.stage == "sync"

    run(main())


async def ask(there: Running, sync: RemoteSync, tree: RemoteTree, field: str, name: str) -> None:
    """A request that our own side never makes: `name` stands in `field`."""
    row = RemoteFile(name, tree.files[0].sha256, 2).row
    if field in ("files", "folders"):
        fields = {"files": [], "folders": [], field: [row] if field == "files" else [name]}
        await there.link.request("manifest", fields, 10)
        return
    specs, _, _ = await sync.delta((tree,))
    fields = {**_fields(listing(there, tree)), "trees": specs, "inline": [], "forget": []}
    if field == "wanted":
        fields["wanted"] = [name]
    else:
        specs[0][field] = [row] if field == "set" else [name]
    await there.link.request("run", fields, 10)


def test_names_that_lead_out_are_not_sent(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    for target, words in (("../secret", "is a link out of the workspace"), ("nowhere", "is no file")):
        (root / "link").symlink_to(target)
        with pytest.raises(TargetFault, match=words):
            tree_of(root, FileHashes())
        (root / "link").unlink()
    with pytest.raises(TargetFault, match="leads out of the workspace"):
        tree_of(root, FileHashes(), ["../secret"])


def test_files_that_stand_in_each_others_way_are_a_fault(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree = there.held.tree({"a": b"file", "a/b": b"below a file"})
            collected = await there.trials.run(listing(there, tree), tmp_path / "1")
            with pytest.raises(TargetFault, match="could not be laid out"):
                _ = collected.ended

    run(main())


def test_an_agent_that_asks_for_what_was_never_offered_gets_nothing() -> None:
    async def main() -> None:
        sync = RemoteSync(None, Held(b"secret"))  # type: ignore[arg-type]
        with pytest.raises(TargetFault, match="never offered"):
            await sync.supply({"blobs": [hashlib.sha256(b"secret").hexdigest()]}, ())

    run(main())


def test_a_new_agent_is_told_again_what_the_old_one_forgot(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree = there.held.tree({"a": b"a", "b": b"b"})
            await there.trials.run(listing(there, tree), tmp_path / "1")
            for path in (there.scratch / "manifests").iterdir():
                path.unlink()
            for path in (there.scratch / "blobs").rglob("*"):
                if path.is_file():
                    path.unlink()
            async with agent(tmp_path / "s") as other:
                there.trials.sync.link = other.link
                trials = RemoteTrials(other.link, there.trials.sync)
                assert await found(trials, listing(other, tree), tmp_path / "2") == expected(tree)

    run(main())


def test_same_size_edits_within_a_second_are_never_missed(tmp_path: Path) -> None:
    hashes = FileHashes()
    for size in (100, 100_000):
        path = tmp_path / f"kernel{size}"
        for number in range(50):
            content = (b"%05d" % number).ljust(size, b".")
            path.write_bytes(content)
            if size == 100:
                os.utime(path, ns=(10**18, 10**18))
            assert hashes.of(path)[0] == hashlib.sha256(content).hexdigest()


def test_a_large_file_that_had_settled_is_hashed_once(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"1" * 100_000)
    os.utime(path, ns=(10**18, 10**18))
    hashes = FileHashes()
    first = hashes.of(path)[0]
    path.write_bytes(b"2" * 100_000)
    os.utime(path, ns=(10**18, 10**18))
    assert hashes.of(path)[0] == first


def test_whatever_changes_the_remote_tree_is_the_local_one(tmp_path: Path) -> None:
    """Edits, additions, deletions and modes at random, over links that break now and then."""
    choose = random.Random(4)
    files: dict[str, tuple[bytes, int]] = {}

    def change() -> None:
        for _ in range(choose.randrange(1, 6)):
            name = "/".join(choose.choice("abc") + str(depth) for depth in range(choose.randrange(1, 4)))
            clash = [each for each in files if each.startswith(name + "/") or name.startswith(each + "/")]
            for each in [*clash, *choose.sample(sorted(files), min(len(files), choose.randrange(2)))]:
                files.pop(each, None)
            size = choose.choice([0, 5, 70_000])
            files[name] = (choose.randbytes(size), choose.choice([0o644, 0o755, 0o600]))

    async def main() -> None:
        held = Held()
        for link in range(3):
            async with agent(tmp_path / "s") as there:
                trials = RemoteTrials(there.link, RemoteSync(there.link, held))
                for step in range(6):
                    change()
                    tree = RemoteTree(tuple(held.file(name, *what) for name, what in sorted(files.items())))
                    rows = await found(trials, listing(there, tree), tmp_path / f"{link}-{step}")
                    assert rows == expected(tree)
                if link == 1:
                    there.process.kill()

    run(main())


def test_a_cut_in_the_stream_leaves_what_was_whole_and_the_next_link_sends_the_rest(tmp_path: Path) -> None:
    async def main() -> None:
        held = Held()
        tree = held.tree({str(number): os.urandom(400_000) for number in range(8)})
        async with agent(tmp_path / "s") as there:
            pieces = held.pieces
            count = 0

            def cut(sha256: str, piece_bytes: int) -> Any:
                nonlocal count
                count += 1
                if count == 6:
                    there.process.kill()
                return pieces(sha256, piece_bytes)

            held.pieces = cut  # type: ignore[method-assign]
            trials = RemoteTrials(there.link, RemoteSync(there.link, held))
            with pytest.raises(TargetFault) as caught:
                await trials.run(listing(there, tree), tmp_path / "1")
            assert caught.value.stage == "lost"
            held.pieces = pieces  # type: ignore[method-assign]
        for blob in (tmp_path / "s" / "blobs").glob("??/*"):
            assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
        async with agent(tmp_path / "s") as there:
            trials = RemoteTrials(there.link, RemoteSync(there.link, held))
            assert await found(trials, listing(there, tree), tmp_path / "2") == expected(tree)

    run(main())


def test_requests_go_on_while_files_are_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree = there.held.tree({"large": os.urandom(20 << 20)})
            sending = asyncio.create_task(there.trials.sync.offer(tree))
            await there.link.request("ping", {}, 10)
            assert not sending.done()
            await sending
            assert (await there.link.request("kept", {}, 10))["blob_bytes"] == 20 << 20

    run(main())


def test_contents_that_somebody_else_cleaned_are_a_fault_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            tree = there.held.tree({"a": b"a"})
            await there.trials.run(listing(there, tree), tmp_path / "1")
            for blob in (tmp_path / "s" / "blobs").rglob("?" * 64):
                blob.unlink()
            collected = await there.trials.run(listing(there, tree), tmp_path / "2")
            with pytest.raises(TargetFault, match="is not kept there any more") as caught:
                _ = collected.ended
            assert caught.value.stage == "sync"
            assert await found(there.trials, listing(there, tree), tmp_path / "3") == expected(tree)

    run(main())
