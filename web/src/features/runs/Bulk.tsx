import { Button, Modal } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ChartSpline, GitCompare, Pause, Square, X } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { seg, send } from '@/api/client'
import type { RunView } from '@/api/types'
import { command } from '@/lib/command'
import { type Verb, verbs } from '@/lib/states'
import { errorText } from '@/ui/Blocks'
import { Command } from '@/ui/Copy'
import css from './runs.module.css'

/** More curves than this are a band, not lines that anybody can follow. */
export const MOST_COMPARED = 100

interface Props {
  runs: RunView[]
  onClear: () => void
}

/** What can be done with the chosen runs, and to how many of them. */
export function Bulk({ runs, onClear }: Props) {
  const { t } = useTranslation()
  const [asked, setAsked] = useState<Verb | null>(null)
  const navigate = useNavigate()
  if (runs.length === 0) return null
  const ids = runs.map((run) => run.id)
  const able = (verb: Verb) => runs.filter((run) => verbs(run.state, run.outside ?? false).includes(verb))
  return (
    <div className={css.bulk} role="toolbar" aria-label={t('bulk_label')}>
      <span>{t('bulk_chosen', { count: runs.length })}</span>
      <Button
        leftSection={<ChartSpline size={13} aria-hidden />}
        disabled={ids.length < 2 || ids.length > MOST_COMPARED}
        title={ids.length > MOST_COMPARED ? t('compare_most', { most: MOST_COMPARED }) : undefined}
        onClick={() => void navigate({ to: '/compare', search: { runs: ids.join(',') } })}
      >
        {t('compare')}
      </Button>
      {ids.length === 2 && (
        <Button
          variant="default"
          leftSection={<GitCompare size={13} aria-hidden />}
          onClick={() => void navigate({ to: '/diff/$a/$b', params: { a: ids[1]!, b: ids[0]! } })}
        >
          {t('diff')}
        </Button>
      )}
      <Button
        variant="default"
        leftSection={<Pause size={13} aria-hidden />}
        disabled={able('pause').length === 0}
        onClick={() => setAsked('pause')}
      >
        {t('verb_pause')}
      </Button>
      <Button
        variant="default"
        color="red"
        leftSection={<Square size={13} aria-hidden />}
        disabled={able('stop').length === 0}
        onClick={() => setAsked('stop')}
      >
        {t('verb_stop')}
      </Button>
      <Button variant="subtle" color="gray" leftSection={<X size={13} aria-hidden />} onClick={onClear}>
        {t('bulk_clear')}
      </Button>
      {asked && <Confirm verb={asked} runs={able(asked)} onClose={() => setAsked(null)} onDone={onClear} />}
    </div>
  )
}

interface ConfirmProps {
  verb: Verb
  runs: RunView[]
  onClose: () => void
  onDone: () => void
}

function Confirm({ verb, runs, onClose, onDone }: ConfirmProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const cards = runs.reduce((sum, run) => sum + (run.cards ?? 0), 0)
  const go = async () => {
    setBusy(true)
    const results = await Promise.allSettled(runs.map((run) => send('POST', `/runs/${seg(run.id)}/${verb}`, {})))
    results.forEach((result, i) => {
      if (result.status === 'rejected')
        notifications.show({ color: 'red', title: runs[i]?.ref, message: errorText(result.reason) })
    })
    await client.invalidateQueries({ queryKey: ['runs'] })
    onClose()
    onDone()
  }
  return (
    <Modal opened onClose={onClose} title={t(`verb_${verb}`)} closeButtonProps={{ 'aria-label': t('close') }}>
      <p style={{ marginTop: 0 }}>
        {t(verb === 'stop' ? 'bulk_stop_effect' : 'bulk_pause_effect', { count: runs.length, cards })}
      </p>
      <Command text={command(verb, ...runs.map((run) => run.ref))} />
      <div style={{ display: 'flex', justifyContent: 'flex-end', gap: 8, marginTop: 16 }}>
        <Button variant="default" onClick={onClose}>
          {t('cancel')}
        </Button>
        <Button color={verb === 'stop' ? 'red' : undefined} loading={busy} onClick={() => void go()} data-autofocus>
          {t(`verb_${verb}`)}
        </Button>
      </div>
    </Modal>
  )
}
