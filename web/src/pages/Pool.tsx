import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { nodes as nodesQuery, queue as queueQuery, status } from '@/api/queries'
import { Environments } from '@/features/pool/Environments'
import { Health } from '@/features/pool/Health'
import { Node } from '@/features/pool/Node'
import css from '@/features/pool/pool.module.css'
import { Queue } from '@/features/pool/Queue'
import { Async, Empty } from '@/ui/Blocks'
import { Page } from '@/ui/Page'

export function Pool() {
  const { t } = useTranslation()
  const nodes = useQuery(nodesQuery)
  const queue = useQuery(queueQuery)
  const { data } = useQuery(status)
  return (
    <Page
      title={t('nav_pool')}
      note={t('pool_note')}
      ready={!nodes.isPending && !queue.isPending}
      actions={
        data && (
          <div className={css.big}>
            <span>
              <b className="num">
                {data.cards_held ?? 0} / {data.cards_total ?? 0}
              </b>
              {t('cards_in_use')}
            </span>
            <span>
              <b className="num">{queue.data?.length ?? 0}</b>
              {t('waiting')}
            </span>
          </div>
        )
      }
    >
      <Async query={nodes}>
        {(list) =>
          list.length ? (
            list.map((node) => <Node key={node.name} node={node} />)
          ) : (
            <Empty title={t('nodes_none')}>{t('nodes_none_how')}</Empty>
          )
        }
      </Async>
      <Async query={queue}>{(entries) => <Queue entries={entries} />}</Async>
      <Health />
      <Environments />
    </Page>
  )
}
