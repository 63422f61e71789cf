from datetime import UTC, datetime

import pytest

from shared.calls import Window
from trigger.page_query import FaultySource, compose, substituted

SINCE = datetime(2026, 8, 24, tzinfo=UTC)
UNTIL = datetime(2026, 8, 25, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "text", "names"),
    [
        ("select id from t", "select id from t", ()),
        ("where d > :since", "where d > $1::timestamptz", ("since",)),
        ("d <= :until and e > :since", "d <= $1::timestamptz and e > $2::timestamptz", ("until", "since")),
        (":since, :until, :since", "$1::timestamptz, $2::timestamptz, $1::timestamptz", ("since", "until")),
        (":since::date", "$1::timestamptz::date", ("since",)),
        ("d::since", "d::since", ()),
        ("':since' || \":until\"", "':since' || \":until\"", ()),
        ("'it''s :since' :until", "'it''s :since' $1::timestamptz", ("until",)),
        (r"E'\':since' :until", r"E'\':since' $1::timestamptz", ("until",)),
        (r"'\' :until ''", r"'\' $1::timestamptz ''", ("until",)),
        ("$$ :since $$ :until", "$$ :since $$ $1::timestamptz", ("until",)),
        ("$a$ $$ :since $a$ :until", "$a$ $$ :since $a$ $1::timestamptz", ("until",)),
        ("a -- :since\n:until", "a -- :since\n$1::timestamptz", ("until",)),
        ("a /* :x /* :y */ :z */ :until", "a   $1::timestamptz", ("until",)),
        ("f(a := 1)", "f(a := 1)", ()),
        ("a[1:2]", "a[1:2]", ()),
        ("/* open", " ", ()),
    ],
)
def test_named_parameters_are_numbered_where_they_are_parameters(query: str, text: str, names: tuple[str, ...]) -> None:
    found, parameters = substituted(query)
    assert (found if query != "/* open" else found.rstrip() + " ", parameters) == (text, names)


def test_another_name_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(FaultySource, match="uses :untill; it may use :since and :until"):
        substituted("select :untill")


def test_a_query_gets_only_the_ends_of_the_window_that_it_uses() -> None:
    text, parameters = substituted("select id as account from t where d <= :until")
    query = compose(text, parameters, None)
    assert query.window(Window(SINCE, UNTIL)) == [UNTIL]
    assert "limit $2" in query.first
    assert "> $3::text" in query.following


def test_a_comment_at_the_end_does_not_swallow_what_is_added() -> None:
    assert ") as page" in compose("select 1 -- the end", (), None).first.splitlines()[2]
