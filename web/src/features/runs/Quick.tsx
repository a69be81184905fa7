import { SegmentedControl } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import type { Key } from '@/i18n'

/** The filters that people reach for most, as what they are: words of the search language. */
const QUICK: [Key, string][] = [
  ['quick_all', ''],
  ['quick_active', "state in ('starting', 'running', 'stopping')"],
  ['quick_waiting', "state in ('preparing', 'queued', 'held', 'paused')"],
  ['quick_failed', "state = 'failed'"],
  ['quick_finished', "state = 'finished'"],
]

export function Quick({ filter, onChange }: { filter: string; onChange: (filter: string) => void }) {
  const { t } = useTranslation()
  const at = QUICK.findIndex(([, text]) => text === filter)
  return (
    <SegmentedControl
      aria-label={t('quick_label')}
      data={[
        ...QUICK.map(([label], i) => ({ value: String(i), label: t(label) })),
        ...(at < 0 ? [{ value: '-1', label: t('quick_own') }] : []),
      ]}
      value={String(at)}
      onChange={(value) => onChange(QUICK[Number(value)]?.[1] ?? filter)}
    />
  )
}
