"""What holds for each page in which shipped models run: one small file of short parts."""

import pytest

from autograder.commands import cli

LARGEST = 2_000_000  # bytes


@pytest.mark.parametrize(
    ("words", "name"), [(["glass"], "glass.html"), (["glass", "writer"], "writer.html")]
)
def test_the_command_writes_one_small_file_and_says_where(tmp_path, capsys, words, name):
    path = tmp_path / "new folder" / name
    assert cli.main([*words, "--to", str(path)]) == 0
    assert path.stat().st_size < LARGEST
    assert capsys.readouterr().out == f"{path}: {path.stat().st_size / 1e6:.2f} MB\n"
    assert [one.name for one in path.parent.iterdir()] == [name]


@pytest.mark.parametrize("words", [["glass"], ["glass", "writer"]])
def test_a_folder_in_place_of_the_file_gets_a_sentence(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*words, "--to", "."]) == 1
    said = capsys.readouterr().err
    assert "is a folder: name the file to write, as in " in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
