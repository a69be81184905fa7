import { Button, Checkbox, Popover, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Group } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { columnNames } from '@/api/queries'
import type { Key } from '@/i18n'
import { fieldOf } from '@/lib/complete'
import css from './runs.module.css'

const MOST = 3
const FACTS: [string, Key][] = [
  ['tags', 'col_tags'],
  ['state', 'col_state'],
  ['owner', 'col_owner'],
  ['name', 'col_run'],
  ['cause', 'col_cause'],
  ['project', 'col_project'],
  ['tree', 'tree'],
  ['environment', 'environment'],
]

interface Props {
  chosen: string[]
  onChange: (fields: string[]) => void
  project: string
}

/** Which fields make a group: up to three of params, tags and facts. */
export function GroupPick({ chosen, onChange, project }: Props) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" width={300} trapFocus>
      <Popover.Target>
        <Button
          variant={chosen.length ? 'light' : 'default'}
          leftSection={<Group size={14} aria-hidden />}
          onClick={() => setOpen((was) => !was)}
        >
          {chosen.length ? t('group_by_n', { count: chosen.length }) : t('group_by')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>{open && <Fields chosen={chosen} onChange={onChange} project={project} />}</Popover.Dropdown>
    </Popover>
  )
}

function Fields({ chosen, onChange, project }: Props) {
  const { t } = useTranslation()
  const [search, setSearch] = useState('')
  const [asked] = useDebouncedValue(search, 200)
  const { data } = useQuery(columnNames(project, asked))
  const params = (data?.params ?? []).map(({ name }): [string, string] => [fieldOf('params', name), name])
  const facts = FACTS.map(([field, title]): [string, string] => [field, t(title)])
  const toggle = (field: string) =>
    onChange(chosen.includes(field) ? chosen.filter((one) => one !== field) : [...chosen, field])
  const listed: [string, [string, string][]][] = [
    [t('columns_fixed'), facts],
    [t('columns_params'), params],
  ]
  return (
    <>
      <TextInput
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
        placeholder={t('group_search')}
        aria-label={t('group_search')}
        data-autofocus
        mb={6}
      />
      <div className={css.columnList}>
        {listed.map(([title, items]) => {
          const shown = items.filter(([, label]) => label.toLowerCase().includes(search.toLowerCase()))
          return (
            shown.length > 0 && (
              <div key={title}>
                <div className={css.columnGroup}>{title}</div>
                {shown.map(([field, label]) => (
                  <Checkbox
                    key={field}
                    size="xs"
                    py={5}
                    label={label}
                    checked={chosen.includes(field)}
                    disabled={!chosen.includes(field) && chosen.length >= MOST}
                    onChange={() => toggle(field)}
                  />
                ))}
              </div>
            )
          )
        })}
      </div>
      {chosen.length > 0 && (
        <Button variant="subtle" mt={8} onClick={() => onChange([])}>
          {t('group_none')}
        </Button>
      )}
    </>
  )
}
