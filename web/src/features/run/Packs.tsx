import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { environment as environmentQuery } from '@/api/queries'
import type { PackView } from '@/api/types'
import { sentence, word } from '@/i18n'
import { size } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import { Digest, Tag } from '@/ui/Small'
import { Ago, Span } from '@/ui/Time'
import css from './run.module.css'

/** How far the environment is packed for each platform, with the end of the build's log. */
export function Packs({ digest }: { digest: string }) {
  const { t } = useTranslation()
  const { data } = useQuery(environmentQuery(digest))
  const packs = data?.packs ?? []
  const names = data?.names ?? []
  if (packs.length === 0 && names.length === 0) return null
  return (
    <>
      {names.length > 0 && (
        <Panel title={t('env_names')}>
          {names.map((name) => (
            <Tag key={name}>{name}</Tag>
          ))}
        </Panel>
      )}
      {packs.map((pack) => (
        <Pack key={pack.platform} pack={pack} />
      ))}
    </>
  )
}

function Pack({ pack }: { pack: PackView }) {
  const { t } = useTranslation()
  const open = pack.state === 'failed' || pack.state === 'building'
  return (
    <Panel title={t('pack_for', { platform: pack.platform })}>
      <Facts
        rows={[
          [t('col_state'), word('pack', pack.state)],
          [t('col_why'), pack.reason && sentence(`reason.${pack.reason.code}`, pack.reason.params)],
          ['Python', pack.python],
          [t('size'), pack.size_bytes ? size(pack.size_bytes) : undefined],
          [t('digest'), pack.tree && <Digest key="d" value={pack.tree} />],
          [t('pack_waiting'), pack.waiting || undefined],
          [t('col_created'), pack.created_us ? <Ago key="a" us={pack.created_us} /> : undefined],
          [t('col_duration'), pack.ended_us ? <Span key="s" from={pack.created_us} to={pack.ended_us} /> : undefined],
        ]}
      />
      {(pack.notes ?? []).map((note) => (
        <p key={note} className={css.note}>
          {note}
        </p>
      ))}
      {pack.log && (
        <details open={open} style={{ marginTop: 12 }}>
          <summary>{t('pack_log')}</summary>
          <pre className={css.pre} tabIndex={0}>
            {pack.log}
          </pre>
        </details>
      )}
    </Panel>
  )
}
