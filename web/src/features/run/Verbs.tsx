import { ActionIcon, Button, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useNavigate } from '@tanstack/react-router'
import { CopyPlus, Ellipsis, Hand, Pause, Play, RotateCcw, Square, SquareTerminal } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunView } from '@/api/types'
import { command } from '@/lib/command'
import { type Verb, verbs } from '@/lib/states'
import css from './run.module.css'
import { VerbConfirm } from './VerbConfirm'

const ICONS = { stop: Square, pause: Pause, resume: Play, retry: RotateCcw, hold: Hand, release: Play }

export function Verbs({ run }: { run: RunView }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [asked, setAsked] = useState<Verb | null>(null)
  return (
    <div className={css.verbs}>
      {verbs(run.state, run.outside ?? false).map((verb) => {
        const Icon = ICONS[verb]
        return (
          <Button
            key={verb}
            variant="default"
            c={verb === 'stop' ? 'var(--tone-red)' : undefined}
            leftSection={<Icon size={13} aria-hidden />}
            onClick={() => setAsked(verb)}
          >
            {t(`verb_${verb}`)}
          </Button>
        )
      })}
      {!run.outside && (
        <Button
          variant="default"
          leftSection={<CopyPlus size={13} aria-hidden />}
          onClick={() => void navigate({ to: '/new', search: { like: run.id } })}
        >
          {t('clone_edit')}
        </Button>
      )}
      <Commands run={run} />
      {asked && <VerbConfirm verb={asked} run={run} onClose={() => setAsked(null)} />}
    </div>
  )
}

/** What can be done with this run in a shell, ready to copy. */
function Commands({ run }: { run: RunView }) {
  const { t } = useTranslation()
  const lines = [
    command('show', run.ref),
    command('logs', run.ref, '-f'),
    command('reproduce', run.ref),
    command('artifacts', 'list', run.ref),
    command('checkpoints', 'list', run.ref),
    ...verbs(run.state, run.outside ?? false).map((verb) => command(verb, run.ref)),
  ]
  const copy = (line: string) => {
    void navigator.clipboard?.writeText(line)
    notifications.show({ message: `${t('copied')}: ${line}`, autoClose: 2500 })
  }
  return (
    <Menu position="bottom-end" width={300}>
      <Menu.Target>
        <ActionIcon variant="default" size={30} aria-label={t('copy_as_command')}>
          <Ellipsis size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{t('copy_as_command')}</Menu.Label>
        {lines.map((line) => (
          <Menu.Item key={line} leftSection={<SquareTerminal size={14} aria-hidden />} onClick={() => copy(line)}>
            <span className="mono">{line}</span>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
