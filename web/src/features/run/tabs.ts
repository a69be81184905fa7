import type { RunDetail } from '@/api/types'
import type { Key } from '@/i18n'

export interface Tab {
  id: string
  title: Key
  count?: (detail: RunDetail) => number
}

export const TABS: Tab[] = [
  { id: 'summary', title: 'tab_summary' },
  { id: 'metrics', title: 'tab_metrics', count: (d) => d.metric_keys?.length ?? 0 },
  { id: 'logs', title: 'tab_logs' },
  { id: 'params', title: 'tab_params', count: (d) => Object.keys(d.spec.params ?? {}).length },
  { id: 'code', title: 'tab_code' },
  { id: 'docs', title: 'tab_docs' },
  { id: 'environment', title: 'tab_environment' },
  { id: 'checkpoints', title: 'tab_checkpoints', count: (d) => d.checkpoints?.length ?? 0 },
  { id: 'artifacts', title: 'tab_artifacts', count: (d) => d.artifacts?.length ?? 0 },
  { id: 'lineage', title: 'tab_lineage' },
]
