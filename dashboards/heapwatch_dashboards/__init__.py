"""Grafana dashboards as code, and the subset of Grafana's dashboard model that they use.

`python -m heapwatch_dashboards` writes `dashboards/generated/*.json`. What a renderer of that JSON has to
know is listed here; the model is Grafana's own
(https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/).

Dashboard
    `uid`, `title`, `description`, `tags`, `time`, `timepicker.refresh_intervals`, `refresh`, `timezone`
    (`browser`), `schemaVersion`, `graphTooltip` 1 (shared crosshair), `templating`, `annotations`, `links`,
    `panels`.
Variables
    `datasource` (type `datasource`), `job` and `instance` (type `query`: `label_values(metric, label)` or
    `query_result(query)`; several values or All, whose value is `.+`; or one). Several values are escaped
    for a regular expression and joined as `(a|b)`. Built in: `$__rate_interval`, `$__interval`, `$__range`.
Annotations
    Prometheus queries at the fixed step `step`: a value at a step is an event; with `useValueForTime` the
    value is the event's time in milliseconds. `titleFormat`, `textFormat` and `tagKeys` read the labels;
    `filter` has the ids of the panels.
Links
    Dashboard links of type `link` to `/d/<uid>`, with `keepTime` and `includeVars`; data links of table
    columns, with `${__data.fields.NAME}`, `${__url_time_range}` and `${datasource}`.
Panels
    `timeseries`, `stat`, `state-timeline`, `table`, and `row`, which holds its panels when it is collapsed.
    `gridPos` counts in 24ths of the width and in 30 pixels of height.
Targets
    `expr`, `legendFormat`, `refId`, `instant` or `range`, `format` (`time_series`, `table`), and
    `interval`, the smallest step.
Fields
    `unit`, `decimals`, `min`, `max`, `noValue`, `links`, `color` (`palette-classic`, `fixed`, `thresholds`),
    `mappings` (`value`), `thresholds` (absolute). In `custom`, for time series: `drawStyle` (`line`,
    `bars`), `lineInterpolation` (`linear`, `stepAfter`), `lineWidth`, `lineStyle` (dash), `fillOpacity`,
    `stacking` (`normal`, `none`), `axisSoftMin`, `axisSoftMax`, `axisWidth`; for tables:
    `cellOptions` (`auto`, `color-background`, `color-text`, `gauge`), `width` and `hidden`. Overrides match
    `byName` or `byRegexp`; a later one wins.
Transformations
    `merge` (tables joined on the columns that all of them have) and `organize` (hide, order, rename).
Units
    `decbytes`, `short`, `none`, `s`, `percentunit`, `cps`, `dateTimeFromNow`.
"""
