import { Button, Select } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { CirclePlay, FlaskConical } from 'lucide-react'
import { useEffect, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError, send } from '@/api/client'
import { cloneOf, templates as templatesQuery } from '@/api/queries'
import type { FaultView, SubmitReply, SubmitRequest, TemplateVersionView } from '@/api/types'
import { SchemaForm } from '@/features/submit/SchemaForm'
import { SpecEditor } from '@/features/submit/SpecEditor'
import css from '@/features/submit/submit.module.css'
import { Faults, Told } from '@/features/submit/Told'
import { useSpec } from '@/features/submit/useSpec'
import { useProject } from '@/lib/project'
import type { Schema, Values } from '@/lib/schemaform'
import { ErrorNote, Panel, Waiting } from '@/ui/Blocks'
import { Page } from '@/ui/Page'

const NONE: Values = {}

/** A run from a template, or like another one: a form and the file side by side, judged before it is sent. */
export function NewRun() {
  const { t } = useTranslation()
  const { template = '', like = '' } = useSearch({ from: '/inside/new' })
  const navigate = useNavigate({ from: '/new' })
  const all = useQuery(templatesQuery)
  const clone = useQuery({ ...cloneOf(like), enabled: Boolean(like) })
  const found = all.data?.find((one) => `${one.space}/${one.name}` === template || one.name === template)
  const version = found?.versions?.[0]
  if (all.isPending || (like && clone.isPending)) return <Waiting />
  if (all.error || clone.error)
    return (
      <div style={{ padding: 20 }}>
        <ErrorNote error={all.error ?? clone.error} />
      </div>
    )
  return (
    <Page
      title={like ? t('new_run_like', { run: like }) : t('new_run')}
      note={version?.description || t(like ? 'new_run_like_note' : 'new_run_note')}
      actions={
        !like && (
          <Select
            w={260}
            label={t('template')}
            placeholder={t('template_none')}
            data={(all.data ?? []).map((one) => ({ value: one.name, label: `${one.name}@${one.latest}` }))}
            value={template || null}
            clearable
            searchable
            onChange={(next) => void navigate({ search: { template: next ?? '' } })}
          />
        )
      }
    >
      <Draft key={`${template} ${like}`} version={version} request={clone.data?.request} />
    </Page>
  )
}

interface DraftProps {
  version: TemplateVersionView | undefined
  /** What a clone sends besides its values: its tree and environment. */
  request: SubmitRequest | undefined
}

function Draft({ version, request }: DraftProps) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [project] = useProject()
  const start = useMemo<Values>(() => {
    if (request) return request.values ?? NONE
    const base: Values = { project: project || 'demo' }
    return version ? { ...base, template: `${version.name}@${version.version}` } : base
  }, [request, version, project])
  const draft = useSpec(start)
  const ask = (dry: boolean) =>
    send<SubmitReply>('POST', '/runs', {
      ...request,
      spec: draft.read!.spec,
      values: draft.values,
      dry_run: dry,
    } satisfies SubmitRequest)
  const dry = useMutation({ mutationFn: () => ask(true) })
  const submit = useMutation({
    mutationFn: () => ask(false),
    onSuccess: (reply) => void navigate({ to: '/runs/$run', params: { run: reply.run_id ?? '' } }),
  })
  const { reset } = dry
  const forget = submit.reset
  // biome-ignore lint/correctness/useExhaustiveDependencies: an answer is about what stood there when it was asked
  useEffect(() => {
    reset()
    forget()
  }, [draft.values, reset, forget])
  const failure = submit.error ?? dry.error
  const faults = all(draft.read?.faults ?? [], failure)
  const other = failure && !(failure instanceof ApiError && failure.faults.length) ? failure : draft.error
  const schema = (version?.schema ?? NONE) as Schema
  return (
    <div className={css.columns}>
      <div className={css.stack}>
        <SchemaForm schema={schema} values={draft.values} faults={faults} onChange={draft.setValues} />
      </div>
      <div className={css.stack}>
        <Panel title={t('form_yaml')} flush>
          <SpecEditor text={draft.text} faults={draft.read?.faults ?? []} onChange={draft.setText} />
        </Panel>
        <div className={css.bar}>
          <Button
            variant="default"
            leftSection={<FlaskConical size={14} aria-hidden />}
            loading={dry.isPending}
            disabled={!draft.read}
            onClick={() => dry.mutate()}
          >
            {t('dry_run')}
          </Button>
          <Button
            leftSection={<CirclePlay size={14} aria-hidden />}
            loading={submit.isPending}
            disabled={!draft.read || (draft.read.faults ?? []).length > 0}
            onClick={() => submit.mutate()}
          >
            {t('submit')}
          </Button>
        </div>
        <div className={css.stack} aria-live="polite">
          {Boolean(other) && <ErrorNote error={other} />}
          <Faults faults={faults} />
          {dry.data && faults.length === 0 && <Told reply={dry.data} />}
        </div>
      </div>
    </div>
  )
}

/** Faults of the file and those that the server found, each once. */
function all(own: FaultView[], failure: unknown): FaultView[] {
  const told = failure instanceof ApiError ? failure.faults : []
  const known = new Set(own.map((fault) => `${fault.field} ${fault.code}`))
  return [...own, ...told.filter((fault) => !known.has(`${fault.field} ${fault.code}`))]
}
