/** What a run was made of and what it cost, as flat names and values to hold side by side. */

import type { RunDetail } from '@/api/types'
import { word } from '@/i18n'
import { cardHours, duration, shortDigest } from '@/lib/format'

export function recordOf(detail: RunDetail): Record<string, unknown> {
  const { run, spec, tree, environment } = detail
  const data = Object.entries(spec.data ?? {}).map(([name, pin]): [string, unknown] => [
    `data.${name}`,
    pin.dataset ? `${pin.dataset}@${pin.version ?? ''}` : pin.ref,
  ])
  const took = run.started_us ? ((run.ended_us || run.contact_us || run.started_us) - run.started_us) / 1e6 : undefined
  return {
    'run.state': word('state', run.state) + (run.cause ? ` · ${word('cause', run.cause)}` : ''),
    'run.command': spec.run || spec.recipe,
    'run.seed': spec.seed,
    'run.determinism': spec.determinism,
    'run.template': spec.template,
    'code.commit': tree?.commit?.slice(0, 12),
    'code.branch': tree?.branch,
    'code.tree': tree && shortDigest(tree.digest),
    'code.changed_files': tree?.dirty,
    'environment.digest': environment?.digest && shortDigest(environment.digest),
    'environment.python': environment?.python,
    'environment.platform': environment?.platform,
    ...Object.fromEntries(data),
    'cards.count': run.cards,
    'cards.kind': spec.resources?.kind,
    'cost.card_hours': cardHours(run.card_seconds ?? 0),
    'cost.attempts': run.attempt,
    'cost.duration': took === undefined ? undefined : duration(took),
    'cost.owner': run.owner,
  }
}

/** Packages by name, to see which versions differ. */
export function packagesOf(detail: RunDetail): Record<string, unknown> {
  return Object.fromEntries((detail.environment?.packages ?? []).map(([name, version]) => [name, version]))
}
