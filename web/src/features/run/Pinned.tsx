import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { size } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import { Digest, Tag } from '@/ui/Small'
import css from './run.module.css'

/** Everything that fixes the result: with these the run can be made again. */
export function Pinned({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const { spec, tree, environment } = detail
  if (detail.run.outside && !tree && !environment) return null // began outside: nothing was pinned
  const what = spec.recipe ? `${t('recipe')} ${spec.recipe}` : spec.run
  return (
    <Panel title={t('pinned')}>
      <Facts
        rows={
          [
            ...Object.entries(spec.data ?? {}).map(
              ([name, pin]) =>
                [
                  `${t('data')} ${name}`,
                  <span key={name}>
                    {pin.dataset ? (
                      <Link to="/datasets/$name" params={{ name: pin.dataset }} style={{ textDecoration: 'underline' }}>
                        {pin.dataset}@{pin.version}
                      </Link>
                    ) : (
                      pin.ref
                    )}{' '}
                    {pin.size_bytes ? <span className="dim">{size(pin.size_bytes)}</span> : null}
                    <br />
                    <Digest value={pin.digest} />
                  </span>,
                ] as [string, React.ReactNode],
            ),
            [t('tree'), tree && <TreeFact key="t" detail={detail} />],
            [t('environment'), environment && <EnvFact key="e" detail={detail} />],
            [
              t('seed'),
              <span key="s" className="num">
                {spec.seed ?? 0}
              </span>,
            ],
            [t('determinism'), t(spec.determinism === 'recorded' ? 'determinism_recorded' : 'determinism_exact')],
            [t('started_from'), spec.from && `${spec.from.kind} ${spec.from.ref}`],
            [t('reproduces'), detail.reproduces && <RunLink key="r" id={detail.reproduces} />],
            [t('template'), spec.template],
            [
              t('retries'),
              Object.entries(spec.retries ?? {}).map(([cause, n]) => <Tag key={cause}>{`${cause}: ${n}`}</Tag>),
            ],
          ].filter(([, value]) => !(Array.isArray(value) && value.length === 0)) as [React.ReactNode, React.ReactNode][]
        }
      />
      {what && <pre className={css.pre}>{what}</pre>}
      {(detail.nondeterminism ?? []).length > 0 && (
        <p className="dim" style={{ margin: '10px 0 0', fontSize: 13 }}>
          {t('nondeterminism')} {detail.nondeterminism!.join(', ')}
        </p>
      )}
    </Panel>
  )
}

function TreeFact({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const tree = detail.tree!
  return (
    <>
      <Digest value={tree.digest} />
      <div className="dim">
        {tree.commit && <span className="mono">{tree.commit.slice(0, 10)} </span>}
        {tree.branch}
        {(tree.dirty ?? 0) + (tree.untracked ?? 0) > 0 &&
          ` · ${t('tree_changes', { count: (tree.dirty ?? 0) + (tree.untracked ?? 0) })}`}
      </div>
    </>
  )
}

function EnvFact({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const env = detail.environment!
  return (
    <>
      <Digest value={env.digest} />
      <div className="dim">
        {env.python} · {t('packages_n', { count: env.packages?.length ?? 0 })}
      </div>
    </>
  )
}

function RunLink({ id }: { id: string }) {
  return (
    <Link to="/runs/$run" params={{ run: id }} className="mono">
      {id}
    </Link>
  )
}
