import { ActionIcon, Tooltip } from '@mantine/core'
import { Check, Copy as CopyIcon, SquareTerminal } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import css from './ui.module.css'

export async function toClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
}

interface ButtonProps {
  text: string
  label: string
  terminal?: boolean
}

export function CopyButton({ text, label, terminal = false }: ButtonProps) {
  const { t } = useTranslation()
  const [done, setDone] = useState(false)
  const copy = async () => {
    await toClipboard(text)
    setDone(true)
    setTimeout(() => setDone(false), 1200)
  }
  const Icon = done ? Check : terminal ? SquareTerminal : CopyIcon
  return (
    <Tooltip label={done ? t('copied') : terminal ? text : label}>
      <ActionIcon size="sm" aria-label={label} onClick={() => void copy()}>
        <Icon size={14} aria-hidden />
      </ActionIcon>
    </Tooltip>
  )
}

/** Text with a button to copy the whole of it. */
export function Copyable({ text, children }: { text: string; children?: ReactNode }) {
  const { t } = useTranslation()
  return (
    <span className={css.copyable}>
      <span className="cut">{children ?? text}</span>
      <CopyButton text={text} label={t('copy_what', { what: text })} />
    </span>
  )
}

/** What a button does, as a line for the shell. */
export function Command({ text }: { text: string }) {
  const { t } = useTranslation()
  return (
    <div className={css.command}>
      <code tabIndex={0}>{text}</code>
      <CopyButton text={text} label={t('copy_command')} />
    </div>
  )
}
