"""The simulated world: bodies, entities and event lists, against their limits."""

from .. import colors
from .. import queries as q
from ..dashboard import Dashboard, Row
from ..empty import NO_BOUNDED_LIST, NO_ENTITIES, NO_EVENTS, NO_WORLD
from ..panel import COUNT, SHARE, Query, fixed, override
from ..panels import bar_gauge, stat, time_series
from .shared import alarm, firing_alerts

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

GLANCE = Row(
    "",
    [
        stat(
            "Bodies",
            Query(q.BODIES_SUM),
            COUNT,
            "All bodies in the worlds of the chosen trainers. Good: around the number of agents times "
            "their parts.",
            empty=NO_WORLD,
        ),
        stat(
            "Bodies nobody owns",
            Query(q.UNKNOWN_BODIES_SUM),
            COUNT,
            "Bodies that no agent, terrain or obstacle accounts for: orphans. Good: 0, or constant.",
            empty=NO_WORLD,
            thresholds=alarm(colors.CRITICAL),
        ),
        stat(
            "Body growth per minute",
            Query(q.BODIES_GROWTH_SUM),
            COUNT,
            "Robust growth over many samples. Good: around zero. Bad: above the limit (10 by default) for "
            "long.",
            empty=NO_WORLD,
            decimals=1,
        ),
        stat(
            "Entities",
            Query(q.ENTITIES_SUM),
            COUNT,
            "Things the environments keep: food sources and the like. Good: constant on average.",
            empty=NO_ENTITIES,
        ),
        stat(
            "Events kept",
            Query(q.EVENTS_SUM),
            COUNT,
            "Items in all event lists. Good: at most the sum of their bounds.",
            empty=NO_EVENTS,
        ),
        stat(
            "Fullest event list",
            Query(f"max({q.EVENTS_FILL})"),
            SHARE,
            "Items over the bound that the list declares. 100 % is normal for a ring; more means that it "
            "is not bounded.",
            empty=NO_BOUNDED_LIST,
            thresholds=colors.thresholds(colors.GOOD, (1.001, colors.CRITICAL)),
            decimals=0,
        ),
    ],
)

BODIES = Row(
    "Bodies",
    [
        time_series(
            "Bodies by type",
            [Query(q.BODIES_BY_TYPE, "{{type}}"), Query(q.BODY_LIMITS_SUM, "{{severity}} limit")],
            COUNT,
            "Every body under exactly one type, stacked. Good: bands of constant height. Bad: one band "
            "widens: "
            "unknown means that something destroyed only a part of an agent. Dashed: the limits of the sum.",
            empty=NO_WORLD,
            stacked=True,
            overrides=BODY_COLORS,
            width=14,
            height=10,
        ),
        time_series(
            "Body growth per minute by type",
            [
                Query(q.BODIES_GROWTH, "{{instance}} {{component}}"),
                Query(q.growth_limit("bodies"), "growth limit"),
            ],
            COUNT,
            "Robust growth over many samples. Good: around zero. Bad: above the dashed limit for long.",
            empty=NO_WORLD,
            decimals=1,
            width=10,
            height=10,
        ),
        time_series(
            "Static bodies",
            [Query(q.STATIC_BODIES, "{{instance}}"), Query(q.STATIC_BODY_LIMITS, "{{severity}} limit")],
            COUNT,
            "Fixed bodies: ground and obstacles. Good: constant. Bad: rising: the terrain is built again "
            "and again.",
            empty=NO_WORLD,
            width=8,
        ),
        time_series(
            "Bodies nobody owns by trainer",
            [Query(q.UNKNOWN_BODIES, "{{instance}}")],
            COUNT,
            "Orphans. Good: zero, or constant. Bad: a few more with every death: limbs are forgotten.",
            empty=NO_WORLD,
            width=8,
        ),
        time_series(
            "Bodies by trainer",
            [Query(q.BODIES, "{{instance}}"), Query(q.BODY_LIMITS, "{{severity}} limit")],
            COUNT,
            "The sum of all types of each trainer, against the limits.",
            empty=NO_WORLD,
            width=8,
        ),
    ],
)

ENTITIES = Row(
    "Entities",
    [
        time_series(
            "Entities by type",
            [Query(q.ENTITIES, "{{instance}} {{type}}"), Query(q.FOOD_LIMITS, "food {{severity}} limit")],
            COUNT,
            "What the environment keeps, by type. Good: constant on average. Bad: food sources above their "
            "dashed limit.",
            empty=NO_ENTITIES,
        ),
        time_series(
            "Entity growth per minute",
            [
                Query(q.ENTITIES_GROWTH, "{{instance}} {{component}}"),
                Query(q.growth_limit("entities"), "growth limit"),
            ],
            COUNT,
            "Robust growth over many samples. Good: around zero. Bad: above the dashed limit for long.",
            empty=NO_ENTITIES,
            decimals=1,
        ),
    ],
)

EVENTS = Row(
    "Event lists",
    [
        time_series(
            "Event list items",
            [Query(q.EVENTS, "{{instance}} {{list}}")],
            COUNT,
            "Length of each event list. Good: rises to its bound and stays. Bad: rises for ever.",
            empty=NO_EVENTS,
            width=8,
        ),
        time_series(
            "Event growth per minute",
            [Query(q.EVENTS_GROWTH, "{{instance}} {{component}}")],
            COUNT,
            "Robust growth over many samples. Good: zero once the bound is reached. Bad: steady and above "
            "zero.",
            empty=NO_EVENTS,
            decimals=1,
            width=8,
        ),
        bar_gauge(
            "Event list fill",
            Query(q.EVENTS_FILL, "{{instance}} {{list}}", instant=True),
            SHARE,
            "Items over the declared bound. 100 % is normal for a ring. A list that is missing here has no "
            "bound.",
            empty=NO_BOUNDED_LIST,
            thresholds=colors.thresholds(colors.GOOD, (1.001, colors.CRITICAL)),
            top=1,
            decimals=0,
        ),
    ],
)

DASHBOARD = Dashboard(
    uid="heapwatch-world",
    description=(
        "The simulated world: bodies by type and owner, entities, event lists, their growth and limits."
    ),
    rows=[GLANCE, BODIES, ENTITIES, EVENTS, Row("Alerts", [firing_alerts()], collapsed=True)],
    variables_from="trainer_info",
)
