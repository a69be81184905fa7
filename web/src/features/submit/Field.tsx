import { NumberInput, Select, Switch, TagsInput, Textarea, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { FaultView } from '@/api/types'
import { sentence } from '@/i18n'
import { plain } from '@/lib/format'
import { belongs, type FormField } from '@/lib/schemaform'

interface Props {
  field: FormField
  value: unknown
  faults: FaultView[]
  onChange: (value: unknown) => void
}

/** One value of a spec, in the form that its schema asks for. An emptied field falls back to the template's value. */
export function Field({ field, value, faults, onChange }: Props) {
  const { t } = useTranslation()
  const mine = faults.filter((fault) => fault.field && belongs(field.name, fault.field))
  const error = mine.length ? mine.map((fault) => sentence(fault.code, fault.params)).join(' ') : undefined
  const limits =
    field.least !== undefined && field.most !== undefined
      ? t('form_between', { least: field.least, most: field.most })
      : ''
  const shared = {
    label: field.title,
    description: [field.about, limits, field.locked ? t('form_locked') : ''].filter(Boolean).join(' · ') || undefined,
    error,
    disabled: field.locked,
    withAsterisk: field.required,
    size: 'xs' as const,
    'data-field': field.name,
  }
  const preset = field.preset === undefined ? '' : plain(field.preset)
  const shown = field.locked ? field.preset : value
  if (field.kind === 'boolean')
    return (
      <Switch
        {...{ ...shared, withAsterisk: undefined }}
        checked={Boolean(shown ?? field.preset)}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    )
  if (field.kind === 'number' || field.kind === 'integer')
    return (
      <NumberInput
        {...shared}
        value={typeof shown === 'number' || typeof shown === 'string' ? shown : ''}
        placeholder={preset}
        allowDecimal={field.kind === 'number'}
        hideControls
        onChange={(next) => onChange(next === '' ? undefined : next)}
      />
    )
  if (field.kind === 'choice')
    return (
      <Select
        {...shared}
        data={field.choices.map((one) => ({ value: JSON.stringify(one), label: plain(one) }))}
        value={shown === undefined ? null : JSON.stringify(shown)}
        placeholder={preset}
        clearable
        onChange={(next) => onChange(next === null ? undefined : JSON.parse(next))}
      />
    )
  if (field.kind === 'list')
    return (
      <TagsInput
        {...shared}
        value={Array.isArray(shown) ? shown.map(String) : []}
        placeholder={preset}
        onChange={(next) => onChange(next.length ? next : undefined)}
      />
    )
  if (field.kind === 'json') return <Json shared={shared} preset={preset} value={shown} onChange={onChange} />
  return (
    <TextInput
      {...shared}
      value={shown === undefined || shown === null ? '' : plain(shown)}
      placeholder={preset}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  )
}

interface JsonProps {
  shared: { label: string; description: string | undefined; error: string | undefined; disabled: boolean }
  preset: string
  value: unknown
  onChange: (value: unknown) => void
}

/** A list or a mapping, written as JSON; what cannot be read stays in the field and is said. */
function Json({ shared, preset, value, onChange }: JsonProps) {
  const { t } = useTranslation()
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value))
  const [wrong, setWrong] = useState(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed must not be written over by itself
  useEffect(() => {
    if (!wrong) setText(value === undefined ? '' : JSON.stringify(value))
  }, [value])
  return (
    <Textarea
      {...shared}
      error={wrong ? t('form_json_wrong') : shared.error}
      value={text}
      placeholder={preset}
      autosize
      minRows={1}
      styles={{ input: { fontFamily: 'var(--mono)' } }}
      onChange={(event) => {
        const next = event.currentTarget.value
        setText(next)
        try {
          const read = next.trim() ? JSON.parse(next) : undefined
          setWrong(false)
          onChange(read)
        } catch {
          setWrong(true)
        }
      }}
    />
  )
}
