import { ActionIcon, Combobox, Popover, TextInput, Tooltip, useCombobox } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { CircleHelp, Search, X } from 'lucide-react'
import { type RefObject, useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { columnNames } from '@/api/queries'
import { complete } from '@/lib/complete'
import { ErrorNote } from '@/ui/Blocks'
import { Kbd } from '@/ui/Small'
import { FilterHelp } from './FilterHelp'
import css from './runs.module.css'

interface Props {
  value: string
  error: unknown
  onChange: (filter: string) => void
  box: RefObject<HTMLInputElement | null>
  project: string
  /** Texts of fields that are on the page. */
  known: Record<string, string[]>
}

/** The run search language: what is typed goes to the address after a short pause; a fault is shown with its way out. */
export function FilterBox({ value, error, onChange, box, project, known }: Props) {
  const { t } = useTranslation()
  const [text, setText] = useState(value)
  const [caret, setCaret] = useState(-1)
  const list = useCombobox({ onDropdownClose: () => list.resetSelectedOption() })
  const { data } = useQuery({ ...columnNames(project), enabled: caret >= 0 })
  useEffect(() => setText(value), [value])
  const offer = useMemo(() => {
    const names = (some: { name: string }[] | undefined) => (some ?? []).map(({ name }) => name)
    return caret < 0
      ? null
      : complete(text, caret, {
          metrics: names(data?.metrics),
          params: names(data?.params),
          tags: names(data?.tags),
          values: known,
        })
  }, [text, caret, data, known])
  const take = (option: string) => {
    if (!offer) return
    const next = text.slice(0, offer.from) + option + text.slice(offer.to)
    const at = offer.from + option.length
    setText(next)
    setCaret(at)
    list.resetSelectedOption()
    requestAnimationFrame(() => box.current?.setSelectionRange(at, at))
  }
  const shown = Boolean(offer) && list.dropdownOpened
  // While completions are offered the filter is most likely half a one.
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), shown ? 1200 : 350)
    return () => clearTimeout(timer)
  }, [text, value, onChange, shown])
  return (
    <div className={css.filter}>
      <Combobox store={list} onOptionSubmit={take} position="bottom-start" width={360} offset={4}>
        <Combobox.Target>
          <TextInput
            ref={box}
            aria-label={t('filter_label')}
            placeholder={t('filter_hint')}
            value={text}
            error={Boolean(error)}
            onChange={(event) => {
              setText(event.currentTarget.value)
              setCaret(event.currentTarget.selectionStart ?? -1)
              list.openDropdown()
              list.resetSelectedOption()
            }}
            onFocus={(event) => setCaret(event.currentTarget.value.length)}
            onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? -1)}
            onBlur={() => list.closeDropdown()}
            onKeyDown={(event) => {
              if (event.key === 'Tab' && shown && list.getSelectedOptionIndex() >= 0) {
                event.preventDefault()
                list.clickSelectedOption()
              }
              if (event.key === 'Enter' && list.getSelectedOptionIndex() < 0) {
                list.closeDropdown()
                onChange(text)
              }
              if (event.key === 'Escape') shown ? list.closeDropdown() : event.currentTarget.blur()
            }}
            leftSection={<Search size={14} aria-hidden />}
            rightSectionWidth={64}
            rightSection={<Right clear={text ? () => onChange('') : null} example={onChange} />}
            styles={{ input: { fontFamily: text ? 'var(--mono)' : undefined } }}
            spellCheck={false}
            autoComplete="off"
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={!offer}>
          <Combobox.Options mah={320} style={{ overflowY: 'auto' }} aria-label={t('filter_completions')}>
            {offer?.options.map((option) => (
              <Combobox.Option key={option} value={option} className="mono">
                {option}
              </Combobox.Option>
            ))}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
      {Boolean(error) && !shown && (
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
