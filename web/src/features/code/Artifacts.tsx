import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { seg, url } from '@/api/client'
import { artifacts as artifactsQuery, artifactText } from '@/api/queries'
import type { ArtifactView, RunDetail } from '@/api/types'
import { word } from '@/i18n'
import { command } from '@/lib/command'
import { size } from '@/lib/format'
import type { RunSearch } from '@/lib/search'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Command } from '@/ui/Copy'
import { Middle, Tag } from '@/ui/Small'
import { CodeText } from './CodeText'
import css from './code.module.css'

const PREVIEW = 512 * 1024
const IMAGE = /\.(png|jpe?g|gif|webp|bmp)$/i
const TEXT = /\.(txt|md|json|jsonl|csv|tsv|ya?ml|toml|log|py|sh|cfg|ini|html?|xml|svg)$/i

interface Props {
  detail: RunDetail
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
}

export function Artifacts({ detail, search, go }: Props) {
  const { t } = useTranslation()
  const query = useQuery(artifactsQuery(detail.run.id))
  return (
    <Async query={query}>
      {(list) => {
        if (list.length === 0) return <Empty title={t('artifacts_none')}>{t('artifacts_none_how')}</Empty>
        const chosen = list.find((one) => one.path === search.file)
        return (
          <div className={css.split}>
            <Panel title={t('files_n', { count: list.length })} flush>
              <div className={css.files}>
                {list.map((one) => (
                  <button
                    type="button"
                    key={one.path}
                    className={css.file}
                    aria-current={one.path === search.file}
                    onClick={() => go({ file: one.path })}
                  >
                    <Middle text={one.path} tail={20} />
                    <Tag>{word('artifact_kind', one.kind)}</Tag>
                    <span className="dim">{size(one.size_bytes)}</span>
                  </button>
                ))}
              </div>
            </Panel>
            {chosen ? (
              <Preview run={detail.run.id} artifact={chosen} />
            ) : (
              <Empty title={t('file_choose')} command={command('artifacts', 'get', detail.run.ref)} />
            )}
          </div>
        )
      }}
    </Async>
  )
}

function Preview({ run, artifact }: { run: string; artifact: ArtifactView }) {
  const { t } = useTranslation()
  const image = artifact.kind === 'image' || IMAGE.test(artifact.path)
  const small = artifact.size_bytes <= PREVIEW
  const text =
    !image &&
    small &&
    (TEXT.test(artifact.path) || ['text', 'log', 'report', 'sample', 'table'].includes(artifact.kind))
  const query = useQuery({ ...artifactText(run, artifact.path), enabled: text })
  const path = `/runs/${seg(run)}/artifacts/content`
  return (
    <Panel
      title={<span className="mono">{artifact.path}</span>}
      actions={
        <a href={url(path, { path: artifact.path, download: true })} download style={{ fontSize: 13 }}>
          {t('download')}
        </a>
      }
      flush
    >
      {image ? (
        <img className={css.image} src={url(path, { path: artifact.path })} alt={artifact.path} />
      ) : text ? (
        <Async query={query}>{(content) => <CodeText text={content} label={artifact.path} />}</Async>
      ) : (
        <Empty title={small ? t('file_binary') : t('file_big', { size: size(artifact.size_bytes) })} />
      )}
      <div style={{ padding: 14 }}>
        <Command text={command('artifacts', 'get', run, artifact.path)} />
      </div>
    </Panel>
  )
}
