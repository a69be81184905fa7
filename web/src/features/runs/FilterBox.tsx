import { ActionIcon, Popover, TextInput, Tooltip } from '@mantine/core'
import { CircleHelp, Search, X } from 'lucide-react'
import { type RefObject, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ErrorNote } from '@/ui/Blocks'
import { Kbd } from '@/ui/Small'
import { FilterHelp } from './FilterHelp'
import css from './runs.module.css'

interface Props {
  value: string
  error: unknown
  onChange: (filter: string) => void
  box: RefObject<HTMLInputElement | null>
}

/** The run search language: what is typed goes to the address after a short pause; a fault is shown with its way out. */
export function FilterBox({ value, error, onChange, box }: Props) {
  const { t } = useTranslation()
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), 350)
    return () => clearTimeout(timer)
  }, [text, value, onChange])
  return (
    <div className={css.filter}>
      <TextInput
        ref={box}
        aria-label={t('filter_label')}
        placeholder={t('filter_hint')}
        value={text}
        error={Boolean(error)}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange(text)
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
        leftSection={<Search size={14} aria-hidden />}
        rightSectionWidth={64}
        rightSection={<Right clear={text ? () => onChange('') : null} example={onChange} />}
        styles={{ input: { fontFamily: text ? 'var(--mono)' : undefined } }}
        spellCheck={false}
        autoComplete="off"
      />
      {Boolean(error) && (
        <div className={css.note}>
          <ErrorNote error={error} />
        </div>
      )}
    </div>
  )
}

function Right({ clear, example }: { clear: (() => void) | null; example: (filter: string) => void }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <div style={{ display: 'flex', alignItems: 'center', gap: 2 }}>
      {clear ? (
        <ActionIcon size="sm" aria-label={t('filter_clear')} onClick={clear}>
          <X size={14} aria-hidden />
        </ActionIcon>
      ) : (
        <Kbd>/</Kbd>
      )}
      <Popover opened={open} onChange={setOpen} position="bottom-end" width={560} trapFocus>
        <Popover.Target>
          <Tooltip label={t('filter_help')}>
            <ActionIcon size="sm" aria-label={t('filter_help')} onClick={() => setOpen((was) => !was)}>
              <CircleHelp size={14} aria-hidden />
            </ActionIcon>
          </Tooltip>
        </Popover.Target>
        <Popover.Dropdown>
          <FilterHelp
            onPick={(filter) => {
              example(filter)
              setOpen(false)
            }}
          />
        </Popover.Dropdown>
      </Popover>
    </div>
  )
}
