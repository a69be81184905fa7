import type { ReactNode } from 'react'
import type { RunDetail } from '@/api/types'
import { Attempts } from './Attempts'
import { Compared } from './Compared'
import { Ended } from './Ended'
import { Events } from './Events'
import { Inputs } from './Inputs'
import { Latest } from './Latest'
import { Like } from './Like'
import { Noticed, Steps } from './Noticed'
import { Origin } from './Origin'
import { Pinned } from './Pinned'
import { ProgressPanel } from './ProgressPanel'
import css from './run.module.css'
import { Cost, Registered } from './Side'
import { Stages } from './Stages'
import { Trial } from './Trial'

interface Props {
  detail: RunDetail
  /** The main curves at a glance, drawn by the room that knows charts. */
  charts: ReactNode
}

export function Summary({ detail, charts }: Props) {
  return (
    <div className={css.columns}>
      <div className={css.stack}>
        <Ended detail={detail} />
        <Noticed detail={detail} />
        <Trial detail={detail} />
        <ProgressPanel run={detail.run} />
        <Latest id={detail.run.id} summary={detail.summary ?? {}} />
        {charts}
        <Stages stages={detail.stages ?? []} />
        <Steps detail={detail} />
        <Attempts detail={detail} />
        <Inputs attempts={detail.attempts ?? []} />
        <Events detail={detail} />
      </div>
      <div className={css.stack}>
        <Pinned detail={detail} />
        <Origin origin={detail.origin} />
        <Like like={detail.like} />
        <Compared detail={detail} />
        <Registered detail={detail} />
        <Cost detail={detail} />
      </div>
    </div>
  )
}
