import { Button, Modal, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { seg, send } from '@/api/client'
import type { RunView } from '@/api/types'
import { command } from '@/lib/command'
import { number } from '@/lib/format'
import type { Verb } from '@/lib/states'
import { ErrorNote } from '@/ui/Blocks'
import { Command } from '@/ui/Copy'

interface Props {
  verb: Verb
  run: RunView
  onClose: () => void
}

/** Names the effect before it happens, takes a reason for the record, and shows the same as a command. */
export function VerbConfirm({ verb, run, onClose }: Props) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [message, setMessage] = useState('')
  const act = useMutation({
    mutationFn: () => send<RunView>('POST', `/runs/${seg(run.id)}/${verb}`, message ? { message } : {}),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['run', run.id] })
      void client.invalidateQueries({ queryKey: ['runs'] })
      onClose()
    },
  })
  const words = { ref: run.ref, cards: run.cards ?? 0, step: number(run.progress?.step ?? 0) }
  return (
    <Modal
      opened
      onClose={onClose}
      title={t(`verb_${verb}_title`, words)}
      closeButtonProps={{ 'aria-label': t('close') }}
    >
      <p style={{ margin: '0 0 12px' }}>{t(`verb_${verb}_effect`, words)}</p>
      <TextInput
        label={t('verb_message')}
        placeholder={t('verb_message_hint')}
        value={message}
        onChange={(event) => setMessage(event.currentTarget.value)}
        mb={12}
      />
      <Command text={command(verb, run.ref)} />
      {act.error && (
        <div style={{ marginTop: 12 }}>
          <ErrorNote error={act.error} />
        </div>
      )}
      <div style={{ display: 'flex', justifyContent: 'flex-end', gap: 8, marginTop: 16 }}>
        <Button variant="default" onClick={onClose}>
          {t('cancel')}
        </Button>
        <Button
          color={verb === 'stop' ? 'red' : undefined}
          loading={act.isPending}
          onClick={() => act.mutate()}
          data-autofocus
        >
          {t(`verb_${verb}`)}
        </Button>
      </div>
    </Modal>
  )
}
