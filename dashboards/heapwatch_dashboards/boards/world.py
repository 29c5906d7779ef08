"""The simulated world: bodies, entities and event lists, against their limits."""

from .. import colors
from ..colors import GROWING, LEAK, OVER
from ..dashboard import Dashboard, Row, two_a_line
from ..empty import NO_WORLD
from ..panel import COUNT, SHARE, Query, fixed, override
from ..panels import limit, lines
from ..promql import PROCESS, growth, level, limits, max_by, min_by, select, sum_by
from ..queries.trainers import OF_THE_REST
from ..tables import COLORED_TEXT, Column, table
from .shared import ADDRESS, firing_alerts, growth_over_time, verdict

_BODIES = select("trainer_bodies")

# What is in the world, one row a thing.
_THING = f"{PROCESS}, resource, component"
_IN_WORLD = 'resource=~"bodies|entities|events"'
_LEVEL = level("bodies", "entities", "events")
WORLD_NOW = max_by(_THING, _LEVEL)
_BOUND = select("trainer_event_list_capacity_items")
_CAPACITY = f'label_replace({_BOUND}, "component", "$1", "list", "(.*)")'
WORLD_CAPACITY = max_by(_THING, f'label_replace({_CAPACITY}, "resource", "events", "", "")')
_LEAKS = select("job:trainer_leak:current", _IN_WORLD)
_OVER = select("ALERTS", _IN_WORLD, kind="threshold", alertstate="firing")
_FAST = select("ALERTS", _IN_WORLD, kind="growth", alertstate="firing")
_WORSE = f"{LEAK} + 0 * {_LEAKS} or {OVER} + 0 * {_OVER} or {GROWING} + 0 * {_FAST}"
_REST = f"0 * {_LEVEL} + on (job, instance) group_left () {OF_THE_REST}"
WORLD_STATE = max_by(_THING, f"({_WORSE}) and on ({_THING}) {_LEVEL} or {_REST}")
WORLD_GROWTH = max_by(_THING, growth("bodies", "entities", "events"))

BODY_COLORS = [
    override(kind, color=fixed(color))
    for kind, color in {
        "static": colors.UNKNOWN,
        "terrain": colors.GOOD,
        "agent": colors.BLUE,
        "dynamic": colors.SKY,
        "unknown": colors.CRITICAL,
    }.items()
]
OF_BOUND = colors.judged(colors.GOOD, (1.001, colors.CRITICAL))

NOW = table(
    "In the world now",
    [
        verdict(WORLD_STATE),
        Column("Kind", label="resource", width=90),
        Column("What", label="component"),
        Column("Now", WORLD_NOW, COUNT, width=80),
        Column("Per minute", WORLD_GROWTH, COUNT, width=100, options={"noValue": "too early"}),
        Column(
            "Of its bound",
            f"{WORLD_NOW} / {WORLD_CAPACITY}",
            SHARE,
            width=100,
            cell=COLORED_TEXT,
            options={"thresholds": OF_BOUND},
        ),
        *ADDRESS,
    ],
    "Bodies by type, entities and event lists, each with its growth over ten minutes. Bad: unknown "
    "bodies, which no agent, terrain or obstacle accounts for; a list over 100 % of its bound.",
    empty=NO_WORLD,
    sort_by="Verdict",
    width=12,
    height=10,
)

BODIES_BY_TYPE = lines(
    "Bodies by type",
    [
        Query(sum_by("type", _BODIES), "{{type}}"),
        limit(min_by("severity", limits("bodies", "all")), sum_by(PROCESS, _BODIES), "{{severity}} limit"),
    ],
    COUNT,
    "Every body under exactly one type, stacked. Good: bands of constant height. Bad: one band widens: "
    "unknown means that something destroyed only a part of an agent. Dashed: limits that are near; the page "
    "Trainer lists all.",
    style="areas",
    overrides=BODY_COLORS,
    marked=True,
)

DETAILS = two_a_line(
    growth_over_time("Body growth per minute by type", "bodies"),
    lines(
        "Static bodies",
        [
            Query(sum_by(PROCESS, select("trainer_bodies", type="static")), "{{trainer_name}}"),
            limit(
                min_by("severity", limits("bodies", "static")),
                select("job:trainer_resource:level", resource="bodies", component="static"),
                "{{severity}} limit",
            ),
        ],
        COUNT,
        "Fixed bodies: ground and obstacles. Good: constant. Bad: rising: the terrain is built again and "
        "again.",
    ),
    lines(
        "Entities by type",
        [
            Query(sum_by(f"{PROCESS}, type", select("trainer_entities")), "{{type}} {{trainer_name}}"),
            limit(
                min_by("severity", limits("entities", "food_sources")),
                select("job:trainer_resource:level", resource="entities", component="food_sources"),
                "food {{severity}} limit",
            ),
        ],
        COUNT,
        "What the environment keeps, by type. Good: constant on average. Bad: food sources above their "
        "limit.",
    ),
    growth_over_time("Entity growth per minute", "entities"),
    lines(
        "Event list items",
        Query(sum_by(f"{PROCESS}, list", select("trainer_event_list_items")), "{{list}} {{trainer_name}}"),
        COUNT,
        "Length of each event list. Good: rises to its bound and stays. Bad: rises for ever.",
    ),
    growth_over_time("Event growth per minute", "events"),
)

DASHBOARD = Dashboard(
    uid="heapwatch-world",
    description="Which bodies, entities or event lists of the simulated world pile up?",
    rows=[
        Row("", [[NOW, BODIES_BY_TYPE]]),
        Row("Bodies, entities and event lists", DETAILS, collapsed=True),
        Row("Alerts", [[firing_alerts()]]),
    ],
)
