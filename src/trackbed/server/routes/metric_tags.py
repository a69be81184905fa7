"""What the tags of metrics show: across runs, along the versions of a dataset or a model."""

from typing import Any

from litestar import get

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows.metric_tags import along
from trackbed.tracking import metric_tags
from trackbed.wire.marks import MetricTag, TaggedValue

READ = {"permission": Permission.READ}


@get("/api/v1/metric-tags", opt=READ)
async def tags(trackbed_app: App, who: Scope, project: str = "") -> list[MetricTag]:
    """Tags of metrics, with the metrics and how many runs have them."""
    return await trackbed_app.db.aread(lambda tx: metric_tags.tags(tx, who, project))


@get("/api/v1/metric-tags/{tag:str}/values", opt=READ)
async def values(
    trackbed_app: App, who: Scope, tag: str, project: str = "", dataset: str = "", model: str = ""
) -> list[TaggedValue]:
    """Last and best of every metric with a tag: across runs by time, or along the versions of a dataset or model."""

    def read(tx: ReadTx) -> list[TaggedValue]:
        return along(tx, who, tag.replace("%2F", "/"), project=project, dataset=dataset, model=model)

    return await trackbed_app.db.aread(read)


routes: list[Any] = [tags, values]
