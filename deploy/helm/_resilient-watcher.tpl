{{- /*
A native sidecar for the pod template of any chart:

  initContainers:
    {{- include "resilient-watcher.sidecar" (dict
      "image" "resilient-watcher:0.1.0"
      "volume" "conf"
      "path" "/etc/nginx/conf.d"
      "args" (list "--signal=HUP" "--process=nginx")) | nindent 4 }}

Lint what the chart renders: helm template . | resilient-watcher doctor --manifest -
*/ -}}
{{- define "resilient-watcher.sidecar" -}}
- name: reload
  image: {{ .image | quote }}
  restartPolicy: Always
  args:
    - watch
    - {{ .path | quote }}
    - --listen=:9533
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
  # The containers of the pod are started after the first check, so they have read nothing before it.
  startupProbe:
    httpGet: { path: /readyz, port: 9533 }
    periodSeconds: 1
    failureThreshold: 60
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
