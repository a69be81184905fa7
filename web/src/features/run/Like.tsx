import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { LikeView } from '@/api/types'
import { plain } from '@/lib/format'
import { Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'

/** The run that this one was made from, and what was changed. */
export function Like({ like }: { like: LikeView | null | undefined }) {
  const { t } = useTranslation()
  if (!like) return null
  const changes = like.changes ?? []
  const title = t(like.kind === 'fork' ? 'fork_of' : 'clone_of')
  return (
    <Panel
      title={
        <>
          {title}{' '}
          <Link to="/runs/$run" params={{ run: like.run_id }}>
            {like.ref}
          </Link>
        </>
      }
      flush={changes.length > 0}
    >
      {changes.length === 0 ? (
        <span className="dim">{t('like_nothing')}</span>
      ) : (
        <Table
          label={title}
          rows={changes}
          rowKey={(one) => one.field}
          columns={[
            { id: 'field', title: t('field'), cell: (one) => <span className="mono">{one.field}</span> },
            { id: 'before', title: t('before'), cell: (one) => <Value of={one.before} /> },
            { id: 'after', title: t('after'), cell: (one) => <Value of={one.after} /> },
          ]}
        />
      )}
    </Panel>
  )
}

function Value({ of }: { of: unknown }) {
  return <span className="mono">{of === undefined || of === null ? '–' : plain(of)}</span>
}
