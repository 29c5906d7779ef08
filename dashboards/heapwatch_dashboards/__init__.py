"""Grafana dashboards as code, and the subset of Grafana's dashboard model that they use.

`python -m heapwatch_dashboards` writes `dashboards/generated/*.json`. Everything a renderer of that JSON has to know is listed here and
enforced by `schema.json` beside this file; the model itself is Grafana's
(https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/).

Dashboard
    `uid`, `title`, `description`, `tags`, `time`, `timepicker.refresh_intervals`, `refresh`, `timezone` "browser", `schemaVersion`,
    `graphTooltip` 1 (shared crosshair), `templating`, `annotations`, `links`, `panels`.
Variables
    `datasource` (type datasource), `job` and `instance` (type query, `label_values(metric, label)`, multi, All = `.+`). Several values are
    joined for `=~` as `(a|b)` after escaping each for a regular expression. Built in: `$__rate_interval`, `$__interval`, `$__range`.
Annotations
    Prometheus queries at the fixed step `step`: a value at a step is an event, consecutive steps merge into one region;
    with `useValueForTime` the value is the time of the event in milliseconds. `titleFormat`, `textFormat` and `tagKeys` read labels.
Links
    Dashboard links of type `link` to `/d/<uid>` with `keepTime` and `includeVars`; data links in fields with `${__field.labels.X}`,
    `${__data.fields.X}`, `${__url_time_range}` and `${datasource}`.
Panels
    `timeseries`, `stat`, `bargauge`, `state-timeline`, `table`, `heatmap`, `text`, and `row` (when collapsed its panels are inside it).
    The position is `gridPos` on 24 columns, 30 pixels a unit of height.
Targets
    `expr`, `legendFormat`, `refId`, `instant` or `range`, `format` (`time_series`, `table`, `heatmap`), `interval` (smallest step).
Field options
    `unit`, `decimals`, `min`, `max`, `noValue`, `displayName`, `color` (`palette-classic`, `fixed`, `thresholds`), `mappings` (`value`,
    `range` and `special` null), absolute `thresholds`, `links`; in `custom`: line width, fill, `lineStyle` dash, `stacking` normal, `drawStyle` line or bars, `lineInterpolation`,
    `spanNulls`, axis soft limits and scale; for tables `cellOptions`, `width`, `align`, `hidden`.
    Overrides match `byName` or `byRegexp`, and the last match wins.
Transformations
    `merge` (instant tables joined on the columns they share), `organize` (order, rename, hide), `joinByField` on `Time`, `sortBy`.
Units
    `decbytes`, `decmbytes`-free: `short`, `none`, `s`, `percentunit`, `celsius`, `watt`, `cps`, `dateTimeFromNow`, and
    `suffix:` units for rates per minute.
"""
