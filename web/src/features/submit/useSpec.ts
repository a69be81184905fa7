/** A spec as a form and as a file at once: whichever is edited, the server writes the other. */

import { useCallback, useEffect, useRef, useState } from 'react'
import { send } from '@/api/client'
import type { SpecRead, SpecText } from '@/api/types'
import type { Values } from '@/lib/schemaform'

const PAUSE_MS = 300

export interface Draft {
  values: Values
  text: string
  /** The last answer; null until there is one, and while what was typed is on its way. */
  read: SpecRead | null
  error: unknown
  setValues: (values: Values) => void
  setText: (text: string) => void
}

export function useSpec(start: Values): Draft {
  const [values, putValues] = useState<Values>(start)
  const [text, putText] = useState('')
  const [read, setRead] = useState<SpecRead | null>(null)
  const [error, setError] = useState<unknown>(null)
  const turn = useRef(0)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)

  const latest = useRef('')
  latest.current = text

  const ask = useCallback((form: SpecText, wanted: 'text' | 'values', pause: number) => {
    const mine = ++turn.current
    setRead(null)
    clearTimeout(timer.current)
    timer.current = setTimeout(async () => {
      try {
        const answer = await send<SpecRead>('POST', '/spec-text', form)
        if (mine !== turn.current) return
        setRead(answer)
        setError(null)
        if (wanted === 'text') putText(answer.text)
        else if (!(answer.faults ?? []).some((fault) => fault.code === 'spec_not_yaml')) putValues(answer.values)
      } catch (failure) {
        if (mine === turn.current) setError(failure)
      }
    }, pause)
  }, [])

  const setValues = useCallback(
    (next: Values) => {
      putValues(next)
      ask({ values: next, text: latest.current }, 'text', PAUSE_MS) // comments of the file stay
    },
    [ask],
  )
  const setText = useCallback(
    (next: string) => {
      putText(next)
      ask({ text: next }, 'values', PAUSE_MS)
    },
    [ask],
  )
  useEffect(() => {
    putValues(start)
    ask({ values: start }, 'text', 0)
    return () => clearTimeout(timer.current)
  }, [start, ask])
  return { values, text, read, error, setValues, setText }
}
