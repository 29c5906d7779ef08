"""The simulated world: bodies, entities and event lists, against their limits."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..limits import limit
from ..panel import COUNT, SHARE, Query, fixed, override
from ..panels import alarm, gauge, lines, number
from ..promql import select
from ..queries import world
from .shared import RING, firing_alerts, growth_limit

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


GLANCE = [
    number(
        "Bodies",
        world.BODIES_SUM,
        COUNT,
        "All bodies in the worlds of the chosen trainers. Good: around the number of agents times their "
        "parts.",
    ),
    alarm(
        "Bodies without an owner",
        world.UNKNOWN_BODIES_SUM,
        colors.CRITICAL,
        "Bodies that no agent, terrain or obstacle accounts for: orphans. Good: 0, or constant.",
    ),
    number(
        "Body growth per minute",
        world.BODIES_GROWTH_SUM,
        COUNT,
        "Slope over ten minutes. Good: around zero. Bad: above the limit (10 by default) for long.",
    ),
    number(
        "Entities",
        world.ENTITIES_SUM,
        COUNT,
        "Things the environments keep: food sources and the like. Good: constant on average.",
    ),
    number(
        "Events kept",
        world.EVENTS_SUM,
        COUNT,
        "Items in all event lists. Good: at most the sum of their bounds.",
    ),
    number(
        "Fullest event list",
        world.FULLEST_EVENTS,
        SHARE,
        "Items over the bound that the list declares. 100 % is normal for a ring; more: it is not bounded.",
        thresholds=RING,
    ),
]

BODIES = [
    lines(
        "Bodies by type",
        [
            Query(world.BODIES_BY_TYPE, "{{type}}"),
            *limit(world.BODY_LIMITS_SUM, ALL_BODIES, "{{severity}} limit", across="sum"),
        ],
        COUNT,
        "Every body under exactly one type, stacked. Good: bands of constant height. Bad: one band widens: "
        "unknown means that something destroyed only a part of an agent. Dashed: the limits of the sum.",
        stacked=True,
        overrides=BODY_COLORS,
        height=9,
        marked=True,
    ),
    lines(
        "Body growth per minute by type",
        [Query(world.BODIES_GROWTH, "{{component}} {{instance}}"), *growth_limit("bodies")],
        COUNT,
        "Slope over ten minutes. Good: around zero. Bad: above the dashed limit for long.",
    ),
]

BY_TRAINER = [
    lines(
        "Bodies by trainer",
        [Query(world.BODIES, "{{instance}}"), *limit(world.BODY_LIMITS, ALL_BODIES, "{{severity}} limit")],
        COUNT,
        "The sum of all types of each trainer, against the limits.",
    ),
    lines(
        "Static bodies",
        [
            Query(world.STATIC_BODIES, "{{instance}}"),
            *limit(
                world.STATIC_BODY_LIMITS,
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
        Query(world.UNKNOWN_BODIES, "{{instance}}"),
        COUNT,
        "Orphans. Good: zero, or constant. Bad: a few more with every death: limbs are forgotten.",
    ),
]

ENTITIES = [
    lines(
        "Entities by type",
        [
            Query(world.ENTITIES, "{{type}} {{instance}}"),
            *limit(
                world.FOOD_LIMITS,
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
        [Query(world.ENTITIES_GROWTH, "{{component}} {{instance}}"), *growth_limit("entities")],
        COUNT,
        "Slope over ten minutes. Good: around zero. Bad: above the dashed limit for long.",
    ),
]

EVENTS = [
    [
        lines(
            "Event list items",
            Query(world.EVENTS, "{{list}} {{instance}}"),
            COUNT,
            "Length of each event list. Good: rises to its bound and stays. Bad: rises for ever.",
        ),
        lines(
            "Event growth per minute",
            Query(world.EVENTS_GROWTH, "{{component}} {{instance}}"),
            COUNT,
            "Slope over ten minutes. Good: zero once the bound is reached. Bad: steady and above zero.",
        ),
    ],
    [
        gauge(
            "Event list fill",
            Query(world.EVENTS_FILL, "{{list}} {{instance}}", instant=True),
            SHARE,
            "Items over the declared bound. 100 % is normal for a ring. A list that is missing here has no "
            "bound.",
            thresholds=RING,
            top=1,
        ),
        firing_alerts(width=16),
    ],
]

DASHBOARD = Dashboard(
    uid="heapwatch-world",
    description="Which bodies, entities or event lists of the simulated world pile up?",
    rows=[
        Row("", [GLANCE, BODIES]),
        Row("Bodies", [BY_TRAINER]),
        Row("Entities", [ENTITIES]),
        Row("Event lists", EVENTS),
    ],
)
