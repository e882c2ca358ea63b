"""An instructor's own lessons are linked into the course, and what does not fit is refused."""

import pytest

from autograder import CourseError, imports
from autograder.building import lesson
from autograder.building.own import links
from autograder.building.own.links import OwnLessonError, link
from autograder.building.own.skeleton import begin
from autograder.commands import cli
from tests.needs import besides


@pytest.fixture
def root(tmp_path):
    """A course without its lessons, but for the names of two."""
    for folder in (*links.PLACES.values(), "class"):
        (tmp_path / "course" / folder).mkdir(parents=True)
    for slug in ("00_getting_started", "01_kernel_regression"):
        (tmp_path / "course" / "source" / f"{slug}.py").touch()
    return tmp_path / "course"


@pytest.fixture
def own(root, monkeypatch):
    """The instructor's folder, with a lesson 50."""
    monkeypatch.chdir(root)
    begin("waves", "../mine", root)
    return root.parent / "mine"


def linked(root):
    links = [path for path in root.rglob("*") if path.is_symlink()]
    return sorted(path.relative_to(root).as_posix() for path in links)


LINKS = [
    "attention/own_waves.py",
    "autograder/checks/own_waves.py",
    "autograder/mistakes/own_waves.md",
    "autograder/mistakes/own_waves.py",
    "source/50_own_waves.py",
]


def test_the_files_are_linked_under_their_own_names(root, own):
    assert linked(root) == LINKS
    assert all((root / path).resolve().is_relative_to(own) for path in LINKS)
    found = lesson.read(root / "source" / "50_own_waves.py")
    assert (found.name, found.exercises) == ("own_waves", {"waves": 1})


def test_a_second_lesson_gets_the_next_number_and_the_known_folder(root, own):
    paths = begin("own_echoes", "", root)
    assert paths[0] == own / "source" / "51_own_echoes.py"
    assert (root / "source" / "51_own_echoes.py").is_symlink()


def test_the_folder_is_named_in_the_settings_and_what_stands_there_stays(root, monkeypatch):
    monkeypatch.chdir(root / "source")  # what is relative there is relative to the course then
    settings = root / "class" / "course.toml"
    settings.write_text("care_share = 0.1\n[table]\nx = 1\n")
    begin("waves", "../../mine", root)
    first, *rest = settings.read_text().splitlines()
    assert first.startswith('own = "../mine"')
    assert rest == ["care_share = 0.1", "[table]", "x = 1"]
    link(root)
    assert linked(root) == LINKS


def test_links_come_back_follow_their_folder_and_go_with_their_files(root, own):
    for path in LINKS:
        (root / path).unlink()
    link(root)
    assert linked(root) == LINKS
    own = own.rename(own.with_name("moved"))
    settings = root / "class" / "course.toml"
    settings.write_text('own = "../moved"\n')
    link(root)
    assert linked(root) == LINKS
    assert (root / LINKS[0]).is_file()
    for kind in links.PLACES:
        for path in (own / kind).iterdir():
            path.unlink()
    link(root)
    assert linked(root) == []


def test_own_mistakes_for_a_lesson_of_the_course_count_as_its_own(root, own):
    (root / "autograder" / "mistakes" / "kernel_regression.py").touch()
    name = "own_for_kernel_regression.py"
    (own / "mistakes" / name).write_text("import attention.own_waves\n")
    link(root)
    read = imports.of_lesson("kernel_regression", root)
    assert root / "autograder" / "mistakes" / name in read
    assert root / "attention" / "own_waves.py" in read


ADDED = {
    "source/50_own_echoes.py": "the number 50: 50_own_echoes.py and 50_own_waves.py; give one",
    "source/50_waves.py": "50_waves.py is not called like 50_own_name.py: rename it",
    "source/21_own_waves.py": "21_own_waves.py is not called like 50_own_name.py: rename it",
    "source/60_own_for_x.py": "60_own_for_x.py is not called like 50_own_name.py",
    "attention/waves.py": "waves.py is not called like own_name.py: rename it",
    "mistakes/own_for_kernels.py": "no lesson 'kernels'; own_for_ is followed by one of ",
}


@pytest.mark.parametrize("path", ADDED)
def test_a_file_that_does_not_fit(own, path):
    (own / path).touch()
    refused(ADDED[path], own)


def test_a_file_where_a_link_belongs(root, own):
    (root / LINKS[0]).unlink()
    (root / LINKS[0]).write_text("newer")
    refused("own_waves.py is a file of its own, where the link to .*: move it there if", own)
    assert (root / LINKS[0]).read_text() == "newer"


def test_a_folder_that_is_missing(own):
    own.rename(own.with_name("moved"))
    refused("there is no folder .*mine: bring it back, write where it is now, or take", own)


@pytest.mark.parametrize("named", [".", "mine", ".."])
def test_a_folder_that_an_update_or_a_clean_up_could_reach(root, named):
    (root / "class" / "course.toml").write_text(f'own = "{named}"\n')
    with pytest.raises(OwnLessonError, match="name a folder beside the course"):
        link(root)
    (root / "class" / "course.toml").unlink()
    with pytest.raises(OwnLessonError, match="name a folder beside the course"):
        begin("waves", str(root / named), root)
    assert not (root / named / "checks").exists()


@pytest.mark.parametrize("value", ["3", '""', '["a"]'])
def test_a_setting_that_names_no_folder(root, value):
    (root / "class" / "course.toml").write_text(f"own = {value}\n")
    with pytest.raises(CourseError, match=r'names no folder; write own = "../my-lessons"'):
        link(root)


def refused(sentence, own):
    """``link`` says it in one sentence, and changes nothing."""
    root = own.parent / "course"
    before = linked(root)
    with pytest.raises(OwnLessonError, match=f"(?s)^.*{sentence}") as raised:
        link(root)
    assert "\n" not in str(raised.value)
    assert linked(root) == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Waves", "'Waves' is no name for a lesson: take small letters"),
        ("for_waves", "do not begin with for_"),
        ("two words", "'two words' is no name"),
        ("lambda", "'lambda' is taken"),
        ("softmax", "'softmax' is taken, by an exercise"),
        ("waves", "own_waves.md already: choose another name"),
    ],
)
def test_a_name_that_cannot_be(root, own, name, sentence):
    before = sorted(own.rglob("*"))
    with pytest.raises(OwnLessonError, match=sentence):
        begin(name, "", root)
    assert sorted(own.rglob("*")) == before


def test_every_command_links_first_and_says_what_does_not_fit(monkeypatch, capsys):
    def refuse():
        raise OwnLessonError("so it is")

    monkeypatch.setattr(links, "link", refuse)
    assert cli.main(["due"]) == 1
    assert besides(capsys.readouterr().err) == "so it is\n"
