import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import type { FaultView } from '@/api/types'
import { known, word } from '@/i18n'
import { getAt, groupsOf, type Schema, setAt, type Values } from '@/lib/schemaform'
import { Panel } from '@/ui/Blocks'
import { Field } from './Field'
import css from './submit.module.css'

interface Props {
  schema: Schema
  values: Values
  faults: FaultView[]
  onChange: (values: Values) => void
}

/** The form of a template, made from its schema. */
export function SchemaForm({ schema, values, faults, onChange }: Props) {
  const { t } = useTranslation()
  const groups = useMemo(() => groupsOf(schema), [schema])
  return groups
    .filter((group) => group.fields.length > 0)
    .map((group) => (
      <Panel key={group.name} title={group.name ? titleOf(group.name) : t('form_run')}>
        <div className={css.fields}>
          {group.fields.map((field) => (
            <Field
              key={field.name}
              field={field}
              value={getAt(values, field.path)}
              faults={faults}
              onChange={(value) => onChange(setAt(values, field.path, value))}
            />
          ))}
        </div>
      </Panel>
    ))
}

function titleOf(name: string): string {
  return known(`field.${name}`) ? word('field', name) : name
}
