{{- /*
Copy this file into the folder templates/ of your chart. It only defines templates, and renders nothing by itself.

A native sidecar for the pod template of any chart:

  initContainers:
    {{- include "resilient-watcher.sidecar" (dict
      "image" "resilient-watcher:0.1.0"
      "volume" "conf"
      "path" "/etc/nginx/conf.d"
      "args" (list "--signal=HUP" "--process=nginx")) | nindent 4 }}

`--signal` with `--process` reaches a process of another container only with `shareProcessNamespace: true` in the pod.
A second include in the same pod needs another "name" (default reload) and "port" (default 9533). "resources" replaces the
default requests and limits.

Lint what the chart renders: helm template . | resilient-watcher doctor --manifest -
*/ -}}
{{- define "resilient-watcher.sidecar" -}}
{{- $port := .port | default 9533 -}}
- name: {{ .name | default "reload" | quote }}
  image: {{ .image | quote }}
  restartPolicy: Always
  args:
    - watch
    - {{ .path | quote }}
    - --listen=:{{ $port }}
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
  # The containers of the pod are started after the first check, so they have read nothing before it.
  startupProbe:
    httpGet: { path: /readyz, port: {{ $port }} }
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    httpGet: { path: /livez, port: {{ $port }} }
    periodSeconds: 30
  resources:
    {{- .resources | default (dict "requests" (dict "cpu" "5m" "memory" "64Mi") "limits" (dict "memory" "128Mi")) | toYaml | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: {{ .volume | quote }}
      mountPath: {{ .path | quote }}
      readOnly: true
{{- end }}
