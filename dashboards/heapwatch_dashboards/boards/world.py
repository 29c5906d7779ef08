"""The simulated world: bodies, entities and event lists, against their limits."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..empty import NO_WORLD
from ..panel import COUNT, SHARE, Query, fixed, override
from ..panels import limit, lines
from ..promql import named, select
from ..queries import contents
from ..tables import COLORED_TEXT, Column, table
from .shared import ADDRESS, TRAINER, firing_alerts, growth_limit, verdict

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
ALL_BODIES = select("job:trainer_resource:total", resource="bodies")
OF_BOUND = colors.judged(colors.GOOD, (1.001, colors.CRITICAL))

NOW = table(
    "In the world now",
    [
        verdict(named(contents.WORLD_STATE), width=110),
        Column("Kind", label="resource", width=90),
        Column("What", label="component"),
        Column("Now", contents.WORLD_NOW, COUNT, width=80),
        Column("Per minute", contents.WORLD_GROWTH, COUNT, width=100, options={"noValue": "too early"}),
        Column(
            "Of its bound",
            contents.WORLD_FILL,
            SHARE,
            width=100,
            cell=COLORED_TEXT,
            options={"thresholds": OF_BOUND},
        ),
        TRAINER,
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
        Query(contents.BODIES_BY_TYPE, "{{type}}"),
        *limit(contents.BODY_LIMITS_OF_ONE, ALL_BODIES, "{{severity}} limit", across="sum"),
    ],
    COUNT,
    "Every body under exactly one type, stacked. Good: bands of constant height. Bad: one band widens: "
    "unknown means that something destroyed only a part of an agent. Dashed, with one trainer: its limits.",
    stacked=True,
    overrides=BODY_COLORS,
    marked=True,
)

BODIES = [
    lines(
        "Body growth per minute by type",
        [Query(contents.BODIES_GROWTH, "{{component}} {{trainer_name}}"), *growth_limit("bodies")],
        COUNT,
        "Slope over ten minutes. Good: around zero. Bad: above the dashed limit for long.",
    ),
]

BY_TRAINER = [
    lines(
        "Bodies by trainer",
        [
            Query(contents.BODIES, "{{trainer_name}}"),
            *limit(contents.BODY_LIMITS, ALL_BODIES, "{{severity}} limit"),
        ],
        COUNT,
        "The sum of all types of each trainer, against the limits.",
    ),
    lines(
        "Static bodies",
        [
            Query(contents.STATIC_BODIES, "{{trainer_name}}"),
            *limit(
                contents.STATIC_BODY_LIMITS,
                select("job:trainer_resource:level", resource="bodies", component="static"),
                "{{severity}} limit",
            ),
        ],
        COUNT,
        "Fixed bodies: ground and obstacles. Good: constant. Bad: rising: the terrain is built again and "
        "again.",
    ),
    lines(
        "Bodies without an owner by trainer",
        Query(contents.UNKNOWN_BODIES, "{{trainer_name}}"),
        COUNT,
        "Orphans. Good: zero, or constant. Bad: a few more with every death: limbs are forgotten.",
    ),
]

ENTITIES = [
    lines(
        "Entities by type",
        [
            Query(contents.ENTITIES, "{{type}} {{trainer_name}}"),
            *limit(
                contents.FOOD_LIMITS,
                select("job:trainer_resource:level", resource="entities", component="food_sources"),
                "food {{severity}} limit",
            ),
        ],
        COUNT,
        "What the environment keeps, by type. Good: constant on average. Bad: food sources above their "
        "limit.",
    ),
    lines(
        "Entity growth per minute",
        [Query(contents.ENTITIES_GROWTH, "{{component}} {{trainer_name}}"), *growth_limit("entities")],
        COUNT,
        "Slope over ten minutes. Good: around zero. Bad: above the dashed limit for long.",
    ),
]

EVENTS = [
    lines(
        "Event list items",
        Query(contents.EVENTS, "{{list}} {{trainer_name}}"),
        COUNT,
        "Length of each event list. Good: rises to its bound and stays. Bad: rises for ever.",
    ),
    lines(
        "Event growth per minute",
        Query(contents.EVENTS_GROWTH, "{{component}} {{trainer_name}}"),
        COUNT,
        "Slope over ten minutes. Good: zero once the bound is reached. Bad: steady and above zero.",
    ),
]

DASHBOARD = Dashboard(
    uid="heapwatch-world",
    description="Which bodies, entities or event lists of the simulated world pile up?",
    rows=[
        Row("", [[NOW, BODIES_BY_TYPE]]),
        Row("Bodies", [BODIES, BY_TRAINER], collapsed=True),
        Row("Entities", [ENTITIES], collapsed=True),
        Row("Event lists", [EVENTS], collapsed=True),
        Row("Alerts", [[firing_alerts()]]),
    ],
)
