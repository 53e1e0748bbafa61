{{- define "noonmark.labels" -}}
app.kubernetes.io/name: noonmark
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "noonmark.check" -}}
{{- if and (not .Values.data) (or .Values.standby (gt (int .Values.readers) 0)) }}
{{- fail "standby and readers share a location: set data to s3://, gs:// or az://" }}
{{- end }}
{{- if and (not .Values.tlsSecret) (not .Values.insecureListen) }}
{{- fail "set tlsSecret, or insecureListen=true where the network is trusted" }}
{{- end }}
{{- end }}

{{- define "noonmark.pod" -}}
securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001}
terminationGracePeriodSeconds: 60
containers:
  - name: noonmark
    image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args:
      - serve
      - --config
      - /etc/noonmark/noonmark.toml
      {{- range .flags }}
      - {{ . }}
      {{- end }}
      {{- if .root.Values.insecureListen }}
      - --insecure-listen
      {{- end }}
      {{- if .root.Values.consensusSecret }}
      - --consensus
      - $(NOONMARK_CONSENSUS)
      {{- end }}
    env:
      - name: HOME
        value: /var/lib/noonmark
      - name: NOONMARK_PASSWORD
        valueFrom: {secretKeyRef: {name: {{ .root.Values.credentialsSecret }}, key: password}}
      - name: NOONMARK_METRICS_TOKEN
        valueFrom: {secretKeyRef: {name: {{ .root.Values.credentialsSecret }}, key: metrics-token}}
      - name: NOONMARK_SECRET_KEY
        valueFrom: {secretKeyRef: {name: {{ .root.Values.credentialsSecret }}, key: secret-key, optional: true}}
      {{- if .root.Values.consensusSecret }}
      - name: NOONMARK_CONSENSUS
        valueFrom: {secretKeyRef: {name: {{ .root.Values.consensusSecret }}, key: url}}
      {{- end }}
    {{- with .root.Values.envFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: pg, containerPort: 6875}
      - {name: http, containerPort: 6876}
    {{- if .probes }}
    livenessProbe:
      httpGet: {path: /healthz, port: http, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.tlsSecret "") }}}
      initialDelaySeconds: 60
      periodSeconds: 10
      failureThreshold: 6
    {{- end }}
    readinessProbe:
      httpGet: {path: /readyz, port: http, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.tlsSecret "") }}}
      periodSeconds: 2
    resources:
      {{- toYaml .root.Values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: config, mountPath: /etc/noonmark}
      - {name: data, mountPath: /var/lib/noonmark}
      {{- if .root.Values.tlsSecret }}
      - {name: tls, mountPath: /etc/noonmark-tls, readOnly: true}
      {{- end }}
volumes:
  - name: config
    configMap: {name: {{ .root.Release.Name }}}
  {{- if .scratch }}
  - name: data
    emptyDir: {}
  {{- end }}
  {{- if .root.Values.tlsSecret }}
  - name: tls
    secret: {secretName: {{ .root.Values.tlsSecret }}, defaultMode: 0440}
  {{- end }}
{{- end }}
