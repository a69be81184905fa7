import { SegmentedControl } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { size } from '@/lib/format'
import { patchCounts, patchLines } from '@/lib/patch'
import type { RunSearch } from '@/lib/search'
import { Empty, Facts, Panel } from '@/ui/Blocks'
import { Copyable } from '@/ui/Copy'
import { Digest } from '@/ui/Small'
import { CodeText } from './CodeText'
import { TreeFiles } from './TreeFiles'

interface Props {
  detail: RunDetail
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
}

/** The captured working tree: where it came from, what was changed against the commit, every file. */
export function Code({ detail, search, go }: Props) {
  const { t } = useTranslation()
  const tree = detail.tree
  const [view, setView] = useState(tree?.patch && !search.file ? 'changes' : 'files')
  if (!tree) return <Empty title={t('code_none')}>{t('code_none_how')}</Empty>
  const { added, removed } = patchCounts(patchLines(tree.patch ?? ''))
  return (
    <div style={{ display: 'flex', flexDirection: 'column', gap: 16 }}>
      <Panel>
        <Facts
          rows={[
            [t('tree'), <Digest key="d" value={tree.digest} />],
            [
              t('commit'),
              tree.commit && (
                <span key="c" className="mono">
                  <Copyable text={tree.commit} />
                </span>
              ),
            ],
            [t('branch'), tree.branch],
            [t('remote'), tree.remote],
            [t('captured'), t('captured_counts', { files: tree.files ?? 0, size: size(tree.size_bytes ?? 0) })],
            [
              t('changes'),
              t('changes_counts', {
                dirty: tree.dirty ?? 0,
                untracked: tree.untracked ?? 0,
                ignored: tree.ignored ?? 0,
              }),
            ],
          ]}
        />
      </Panel>
      <SegmentedControl
        style={{ alignSelf: 'flex-start' }}
        aria-label={t('tab_code')}
        value={view}
        onChange={setView}
        data={[
          { value: 'changes', label: `${t('changes')} +${added} −${removed}` },
          { value: 'files', label: t('files') },
        ]}
      />
      {view === 'files' ? (
        <TreeFiles digest={tree.digest} file={search.file ?? ''} onFile={(file) => go({ file })} />
      ) : tree.patch ? (
        <Panel flush>
          <CodeText text={tree.patch} patch label={t('changes')} />
        </Panel>
      ) : (
        <Empty title={t('patch_none')}>{t('patch_none_how')}</Empty>
      )}
    </div>
  )
}
