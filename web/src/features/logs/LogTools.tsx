import { Button, Select, Switch, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { CircleAlert, Download, Search } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunSearch } from '@/lib/search'
import css from './logs.module.css'
import type { LogFilter } from './useLogs'

interface Props {
  filter: LogFilter
  go: (change: Partial<RunSearch>) => void
  ranks: number
  attempts: number
  wrap: boolean
  onWrap: (on: boolean) => void
  onError: () => void
  onDownload: () => void
}

export function LogTools({ filter, go, ranks, attempts, wrap, onWrap, onError, onDownload }: Props) {
  const { t } = useTranslation()
  const [text, setText] = useState(filter.grep)
  useEffect(() => setText(filter.grep), [filter.grep])
  const later = useDebouncedCallback((grep: string) => go({ grep }), 300)
  const numbers = (n: number, from: number) => Array.from({ length: n }, (_, i) => String(i + from))
  return (
    <div className={css.tools} role="toolbar" aria-label={t('log_tools')}>
      <TextInput
        w={260}
        aria-label={t('logs_search')}
        placeholder={t('logs_search')}
        leftSection={<Search size={14} aria-hidden />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value)
          later(event.currentTarget.value)
        }}
      />
      <Select
        w={130}
        aria-label={t('level')}
        data={[
          { value: '', label: t('level_all') },
          { value: 'info', label: t('level_info') },
          { value: 'warning', label: t('level_warning') },
          { value: 'error', label: t('level_error') },
        ]}
        value={filter.level}
        onChange={(level) => go({ level: level ?? '' })}
        allowDeselect={false}
      />
      {ranks > 1 && (
        <Select
          w={120}
          aria-label={t('rank')}
          data={[
            { value: '', label: t('rank_all') },
            ...numbers(ranks, 0).map((n) => ({ value: n, label: t('rank_n', { n }) })),
          ]}
          value={filter.rank}
          onChange={(rank) => go({ rank: rank ?? '' })}
          allowDeselect={false}
        />
      )}
      {attempts > 1 && (
        <Select
          w={130}
          aria-label={t('attempt')}
          data={[
            { value: '', label: t('attempt_all') },
            ...numbers(attempts, 1).map((n) => ({ value: n, label: t('attempt_n', { n }) })),
          ]}
          value={filter.attempt}
          onChange={(attempt) => go({ attempt: attempt ?? '' })}
          allowDeselect={false}
        />
      )}
      <Switch size="xs" label={t('wrap')} checked={wrap} onChange={(event) => onWrap(event.currentTarget.checked)} />
      <span style={{ flex: 1 }} />
      <Button variant="default" leftSection={<CircleAlert size={14} aria-hidden />} onClick={onError}>
        {t('first_error')}
      </Button>
      <Button variant="default" leftSection={<Download size={14} aria-hidden />} onClick={onDownload}>
        {t('download')}
      </Button>
    </div>
  )
}
