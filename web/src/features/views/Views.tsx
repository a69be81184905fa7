import { ActionIcon, Button, Checkbox, Menu, Modal, TextInput, Tooltip } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Bookmark, Plus, Save, Trash2, Users } from 'lucide-react'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { seg, send } from '@/api/client'
import { views as viewsQuery } from '@/api/queries'
import type { SavedView, SavedViewRequest } from '@/api/types'
import { ErrorNote, errorText } from '@/ui/Blocks'

interface Props {
  page: string
  project: string
  /** The address of the page behind its `?`, without the view. */
  query: string
  /** Id of the view that was opened. */
  open: string
  onOpen: (view: SavedView | null) => void
}

/** Addresses under a name: one's own, and those that somebody shared with the space. */
export function Views({ page, project, query, open, onOpen }: Props) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const { data = [] } = useQuery(viewsQuery(page, project))
  const [naming, setNaming] = useState(false)
  const current = data.find((view) => view.id === open)
  const changed = Boolean(current) && current?.query !== query
  const again = () => client.invalidateQueries({ queryKey: ['views'] })
  const failed = (error: unknown) => void notifications.show({ color: 'red', message: errorText(error) })
  const update = useMutation({
    mutationFn: (view: SavedView) =>
      send<SavedView>('PUT', `/views/${seg(view.id)}`, {
        name: view.name,
        page,
        project: view.project ?? '',
        shared: view.shared ?? false,
        query,
        expected: view.version ?? 1,
      } satisfies SavedViewRequest),
    onSuccess: again,
    onError: failed,
  })
  const remove = useMutation({
    mutationFn: (view: SavedView) => send('DELETE', `/views/${seg(view.id)}`),
    onSuccess: (_, view) => {
      if (view.id === open) onOpen(null)
      return again()
    },
    onError: failed,
  })
  return (
    <>
      <Menu position="bottom-end" width={280}>
        <Menu.Target>
          <Button variant={current ? 'light' : 'default'} leftSection={<Bookmark size={14} aria-hidden />}>
            <span className="cut" style={{ maxWidth: 160 }}>
              {current ? `${current.name}${changed ? ' *' : ''}` : t('views')}
            </span>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {data.length > 0 && <Menu.Label>{t('views_saved')}</Menu.Label>}
          {data.map((view) => (
            <Menu.Item
              key={view.id}
              leftSection={view.shared ? <Users size={14} aria-hidden /> : <Bookmark size={14} aria-hidden />}
              rightSection={view.mine ? <Remove view={view} onRemove={remove.mutate} /> : undefined}
              onClick={() => onOpen(view)}
            >
              <div className="cut" style={{ fontWeight: view.id === open ? 600 : undefined }}>
                {view.name}
              </div>
              {!view.mine && <div className="dim">{view.owner}</div>}
            </Menu.Item>
          ))}
          {data.length > 0 && <Menu.Divider />}
          {current?.mine && changed && (
            <Menu.Item leftSection={<Save size={14} aria-hidden />} onClick={() => update.mutate(current)}>
              {t('view_update', { name: current.name })}
            </Menu.Item>
          )}
          <Menu.Item leftSection={<Plus size={14} aria-hidden />} onClick={() => setNaming(true)}>
            {t('view_save')}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Naming
        opened={naming}
        onClose={() => setNaming(false)}
        request={{ name: '', page, project, query }}
        onSaved={(view) => {
          setNaming(false)
          void again()
          onOpen(view)
        }}
      />
    </>
  )
}

function Remove({ view, onRemove }: { view: SavedView; onRemove: (view: SavedView) => void }) {
  const { t } = useTranslation()
  return (
    <Tooltip label={t('view_delete', { name: view.name })}>
      <ActionIcon
        component="span"
        size="sm"
        aria-label={t('view_delete', { name: view.name })}
        onClick={(event) => {
          event.stopPropagation()
          onRemove(view)
        }}
      >
        <Trash2 size={13} aria-hidden />
      </ActionIcon>
    </Tooltip>
  )
}

interface NamingProps {
  opened: boolean
  onClose: () => void
  request: SavedViewRequest
  onSaved: (view: SavedView) => void
}

function Naming({ opened, onClose, request, onSaved }: NamingProps) {
  const { t } = useTranslation()
  const [name, setName] = useState('')
  const [shared, setShared] = useState(false)
  const save = useMutation({
    mutationFn: () => send<SavedView>('POST', '/views', { ...request, name, shared }),
    onSuccess: (view) => {
      setName('')
      onSaved(view)
    },
  })
  return (
    <Modal opened={opened} onClose={onClose} title={t('view_save')} closeButtonProps={{ 'aria-label': t('close') }}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <TextInput
          label={t('name')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
          mb={12}
        />
        <Checkbox
          size="xs"
          label={t('view_share')}
          checked={shared}
          onChange={(event) => setShared(event.currentTarget.checked)}
          mb={14}
        />
        {Boolean(save.error) && <ErrorNote error={save.error} />}
        <Button type="submit" mt={10} loading={save.isPending} disabled={!name.trim()}>
          {t('save')}
        </Button>
      </form>
    </Modal>
  )
}
