import { Button, Checkbox, Popover, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Columns3 } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { columnNames } from '@/api/queries'
import type { ColumnInfo } from '@/api/types'
import { locale } from '@/i18n'
import { count } from '@/lib/format'
import { FIXED, USUAL } from './runColumns'
import css from './runs.module.css'

interface Props {
  chosen: string[]
  onChange: (ids: string[]) => void
  project: string
}

export function Columns({ chosen, onChange, project }: Props) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" width={320} trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<Columns3 size={14} aria-hidden />}
          onClick={() => setOpen((was) => !was)}
        >
          {t('columns')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>{open && <Chooser chosen={chosen} onChange={onChange} project={project} />}</Popover.Dropdown>
    </Popover>
  )
}

interface Item {
  id: string
  label: string
  runs?: number
}

/** Names come from the project's catalogue, so that a sort or a filter never makes a column vanish. */
function Chooser({ chosen, onChange, project }: Props) {
  const { t } = useTranslation()
  const [search, setSearch] = useState('')
  const [asked] = useDebouncedValue(search.replace(/^(metrics|params)\./, ''), 200)
  const { data } = useQuery(columnNames(project, asked))
  const toggle = (id: string) =>
    onChange(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id])
  const typed = /^(metrics|params)\../.test(search) ? [search] : []
  const extra = [...chosen.filter((id) => /^(metrics|params)\./.test(id)), ...typed]
  const groups: [string, Item[], number][] = [
    [t('columns_fixed'), FIXED.map(({ id, title }) => ({ id, label: title ? t(title) : id })), 0],
    [t('columns_metrics'), named('metrics.', data?.metrics ?? [], extra), data?.total?.metrics ?? 0],
    [t('columns_params'), named('params.', data?.params ?? [], extra), data?.total?.params ?? 0],
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
        {groups.map(([title, items, total]) => {
          const shown = items.filter(({ id, label }) => `${id} ${label}`.toLowerCase().includes(search.toLowerCase()))
          return (
            shown.length > 0 && (
              <div key={title}>
                <div className={css.columnGroup}>
                  {title}
                  {total > items.length && <span>{t('columns_of', { shown: items.length, total })}</span>}
                </div>
                {shown.map(({ id, label, runs }) => (
                  <Checkbox
                    key={id}
                    size="xs"
                    py={5}
                    label={label}
                    description={runs ? t('columns_runs', { count: runs, shown: count(runs, locale()) }) : undefined}
                    styles={{ label: { overflowWrap: 'anywhere' }, description: { marginTop: 0 } }}
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

function named(prefix: string, found: ColumnInfo[], extra: string[]): Item[] {
  const items = found.map(({ name, runs = 0 }) => ({ id: prefix + name, label: name, runs }))
  const known = new Set(items.map(({ id }) => id))
  const more = [...new Set(extra)].filter((id) => id.startsWith(prefix) && !known.has(id))
  return [...items, ...more.map((id) => ({ id, label: id.slice(prefix.length) }))]
}
