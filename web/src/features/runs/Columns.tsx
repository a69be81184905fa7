import { Button, Checkbox, Popover, TextInput } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { Columns3 } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { run as runQuery } from '@/api/queries'
import { FIXED, USUAL } from './runColumns'
import css from './runs.module.css'

interface Props {
  chosen: string[]
  onChange: (ids: string[]) => void
  /** Runs whose metrics and params are offered: the catalogue, not what happens to be on the page. */
  sample: string[]
}

export function Columns({ chosen, onChange, sample }: Props) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" width={300} trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<Columns3 size={14} aria-hidden />}
          onClick={() => setOpen((was) => !was)}
        >
          {t('columns')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>{open && <Chooser chosen={chosen} onChange={onChange} sample={sample} />}</Popover.Dropdown>
    </Popover>
  )
}

function useCatalogue(sample: string[]): { metrics: string[]; params: string[] } {
  const details = useQueries({ queries: sample.map((id) => ({ ...runQuery(id), staleTime: 60_000 })) })
  return useMemo(() => {
    const metrics = new Set<string>()
    const params = new Set<string>()
    for (const { data } of details) {
      for (const key of data?.metric_keys ?? []) metrics.add(`metrics.${key}`)
      for (const key of Object.keys(data?.spec.params ?? {})) params.add(`params.${key}`)
    }
    return { metrics: [...metrics].sort(), params: [...params].sort() }
  }, [details])
}

function Chooser({ chosen, onChange, sample }: Props) {
  const { t } = useTranslation()
  const [search, setSearch] = useState('')
  const { metrics, params } = useCatalogue(sample)
  const toggle = (id: string) => onChange(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id])
  const typed = /^(metrics|params)\../.test(search) ? [search] : []
  const extra = chosen.filter((id) => /^(metrics|params)\./.test(id))
  const groups: [string, { id: string; label: string }[]][] = [
    [t('columns_fixed'), FIXED.map((column) => ({ id: column.id, label: column.title ? t(column.title) : column.id }))],
    [t('columns_metrics'), names(metrics, [...extra, ...typed], 'metrics.')],
    [t('columns_params'), names(params, [...extra, ...typed], 'params.')],
  ]
  return (
    <>
      <TextInput
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
        placeholder={t('columns_search')}
        aria-label={t('columns_search')}
        data-autofocus
        mb={6}
      />
      <div className={css.columnList}>
        {groups.map(([title, items]) => {
          const shown = items.filter(({ id, label }) => `${id} ${label}`.toLowerCase().includes(search.toLowerCase()))
          return (
            shown.length > 0 && (
              <div key={title}>
                <div className={css.columnGroup}>{title}</div>
                {shown.map(({ id, label }) => (
                  <Checkbox
                    key={id}
                    size="xs"
                    py={5}
                    label={label}
                    checked={chosen.includes(id)}
                    disabled={id === 'name'}
                    onChange={() => toggle(id)}
                  />
                ))}
              </div>
            )
          )
        })}
      </div>
      <Button variant="subtle" mt={8} onClick={() => onChange(USUAL)}>
        {t('columns_reset')}
      </Button>
    </>
  )
}

function names(found: string[], extra: string[], prefix: string): { id: string; label: string }[] {
  const all = new Set([...found, ...extra.filter((id) => id.startsWith(prefix))])
  return [...all].map((id) => ({ id, label: id.slice(prefix.length) }))
}
