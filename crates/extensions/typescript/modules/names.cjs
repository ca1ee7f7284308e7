/**
 * Names that pi's packages (0.73 to 1.5) export as values. What modules/ does not make of them is a stub (stub.cjs).
 */
"use strict";

module.exports = {
  "pi-coding-agent": `
    AgentSession AgentSessionRuntime ArminComponent AssistantMessageComponent AuthStorage BashExecutionComponent
    BorderedLoader BranchSummaryMessageComponent CONFIG_DIR_NAME CURRENT_SESSION_VERSION
    CompactionSummaryMessageComponent CredentialSynchronizationError CustomEditor CustomMessageComponent
    DEFAULT_COMPACTION_SETTINGS DEFAULT_MAX_BYTES DEFAULT_MAX_LINES DefaultPackageManager DefaultResourceLoader
    DynamicBorder ExtensionEditorComponent ExtensionInputComponent ExtensionRunner ExtensionSelectorComponent
    FileAuthStorageBackend FooterComponent InMemoryAuthStorageBackend InteractiveMode LoginDialogComponent
    ModelRegistry ModelRuntime ModelSelectorComponent OAuthSelectorComponent ProjectTrustStore RpcClient
    SessionManager SessionSelectorComponent SettingsManager SettingsSelectorComponent ShowImagesSelectorComponent
    SkillInvocationMessageComponent Theme ThemeSelectorComponent ThinkingSelectorComponent ToolExecutionComponent
    TreeSelectorComponent UserMessageComponent UserMessageSelectorComponent VERSION VIRTUAL_MODEL_STATE_ENTRY
    buildContextEntries buildSessionContext buildSessionProjection calculateContextTokens codemode
    collectEntriesForBranchSummary compact convertToLlm convertToPng copyToClipboard createAgentSession
    createAgentSessionFromServices createAgentSessionRuntime createAgentSessionServices createBashTool
    createBashToolDefinition createCodemodeExtension createCodingTools createEditTool createEditToolDefinition
    createEventBus createExtensionRuntime createFindTool createFindToolDefinition createGrepTool
    createGrepToolDefinition createLocalBashOperations createLocalPowerShellOperations createLsTool
    createLsToolDefinition createMcpExtension createPowerShellTool createPowerShellToolDefinition createReadOnlyTools
    createReadTool createReadToolDefinition createSyntheticSourceInfo createToolSearchExtension createWriteTool
    createWriteToolDefinition defineTool detectSupportedImageMimeTypeFromFile discoverAndLoadExtensions estimateTokens
    findCutPoint findTurnStartIndex formatDimensionNote formatReadLineRange formatSize formatSkillsForPrompt
    generateBranchSummary generateDiffString generateSummary generateSummaryWithUsage generateUnifiedPatch getAgentDir
    getDocsPath getExamplesPath getLanguageFromPath getLastAssistantUsage getLatestCompactionEntry getMarkdownTheme
    getPackageDir getPowerShellConfig getReadmePath getSelectListTheme getSettingsListTheme getShellConfig
    hasTrustRequiringProjectResources highlightCode initTheme isBashToolResult isEditToolResult isFindToolResult
    isGrepToolResult isLsToolResult isPowerShellToolResult isReadToolResult isToolCallEventType isWriteToolResult
    keyHint keyText loadProjectContextFiles loadSkills loadSkillsFromDir main migrateSessionEntries parseArgs
    parseFrontmatter parseSessionEntries parseSkillBlock prepareBranchEntries rawKeyHint readStoredCredential
    renderDiff resizeImage resolveCliModel resolveModelScopeWithDiagnostics runPrintMode runRpcMode
    serializeConversation sessionEntryToContextMessages shouldCompact stripFrontmatter truncateHead truncateLine
    truncateTail truncateToVisualLines withFileMutationQueue wrapRegisteredTool wrapRegisteredTools
  `.trim().split(/\s+/),
  "pi-tui": `
    Box CURSOR_MARKER CancellableLoader CombinedAutocompleteProvider Container Editor HStack Image Input Key
    KeybindingsManager Loader Markdown Marked MouseRegion ProcessTerminal ScrollView SelectList SettingsList Spacer
    StdinBuffer TUI TUI_KEYBINDINGS Text TruncatedText TuiAltScreen TuiMainScreen VStack allocateImageId
    backgroundAnsi calculateImageRows colorToHex colorToOkhsl colorToOklch colorToRgb compositeTuiLine
    decodeKittyPrintable deleteAllKittyImages deleteKittyImage detectCapabilities encodeITerm2 encodeKitty
    foregroundAnsi formatProgramStatus fuzzyFilter fuzzyMatch getCapabilities getCellDimensions getGifDimensions
    getImageDimensions getJpegDimensions getKeybindings getNativeClipboard getOsc8LinkAtColumn getPngDimensions
    getSelectPageIndex getTerminalColorMode getWebpDimensions hyperlink imageFallback indexedColor
    isAppleTerminalSession isFocusable isKeyRelease isKeyRepeat isKittyProtocolActive isViewportTUI matchesKey
    mixColors okhslColor oklabToOkhslLightness oklchColor parseColor parseKey parseOsc11BackgroundColor
    parseTerminalColorSchemeReport renderFakeCursor renderImage renderLatex replaceControlCharacters
    resetCapabilitiesCache rgbColor setCapabilities setCapabilityOverrides setCellDimensions setImageTranscoder
    setKeybindings setKittyProtocolActive sliceByColumn stripTerminalSequences styleText styleTextWithAnsi
    truncateToWidth visibleWidth wrapTextWithAnsi
  `.trim().split(/\s+/),
  "pi-ai": `
    ANTHROPIC_API_KEY_ENV ANTHROPIC_AUTH_TOKEN_ENV ANTHROPIC_OAUTH_TOKEN_ENV AssistantMessageEventStream
    AssistantMessageFrameEncoder DEFAULT_MAX_AGENT_RETRY_DELAY_MS EventStream InMemoryCredentialStore
    InMemoryModelsStore ModelsError StreamingJsonParser StringEnum ToolCallArgumentsStream Type anthropicMessagesApi
    anthropicOAuthProvider appendAssistantMessageDiagnostic azureOpenAIResponsesApi bedrockConverseStreamApi
    builtinModels builtinProviders calculateCost clampThinkingLevel cleanupSessionResources clearApiProviders
    collapseSystemMessages complete completeSimple contentText createAssistantMessageDiagnostic
    createAssistantMessageEventStream createFauxCore createImagesModels createImagesProvider
    createInitialSystemMessage createModels createProvider declarationsEqual defaultProviderAuthContext envApiKeyAuth
    evaluateCacheWarming extractDiagnosticError fauxAssistantMessage fauxProvider fauxText fauxThinking fauxToolCall
    findEnvKeys formatThrownValue formatUserAgent generateImages generateImagesOpenRouter getAllBuiltinModels
    getApiProvider getApiProviders getAttributionHeaders getBuiltinClassifierModel getBuiltinClassifierModels
    getBuiltinImageModel getBuiltinImageModels getBuiltinModel getBuiltinModelDataGeneratedAt getBuiltinModels
    getBuiltinProviders getCacheWarmingDelayMs getCacheWarmingRequestOptions getClientVersion getCurrentSystemMessage
    getCurrentSystemPrompt getCurrentTools getDeclaredTools getEnvApiKey getGitHubCopilotBaseUrl getIdentityHeaders
    getImageModel getImageModels getImageProviders getImagesApiProvider getInitialSystemMessage getModel getModelType
    getModels getOAuthApiKey getOAuthProvider getOAuthProviderInfoList getOAuthProviders getOpenCodeSessionHeaders
    getOverflowPatterns getPromptCacheTtlMs getProviders getSupportedThinkingLevels getSystemMessageText
    getToolStateChanges githubCopilotOAuthProvider googleGenerativeAIApi googleVertexApi hasApi
    hasNonAdditiveToolChanges hasToolRedefinitions isCacheWarmingReplayable isContextOverflow isModelType
    isRecoverableLength isRetryableAssistantError lazyApi lazyOAuth lazyStream loginAnthropic loginGitHubCopilot
    loginOpenAICodex mergeClientIdentity mistralConversationsApi modelsAreEqual normalizeContext normalizeDomain
    openAICodexResponsesApi openAICompletionsApi openAIResponsesApi openaiCodexOAuthProvider parseJsonWithRepair
    parseStreamingJson parseToolCallArguments piMessagesApi radiusProvider reduceAssistantMessageFrames
    refreshAnthropicToken refreshGitHubCopilotToken refreshOAuthToken refreshOpenAICodexToken registerApiProvider
    registerBuiltInApiProviders registerBuiltInImagesApiProviders registerFauxProvider registerImagesApiProvider
    registerOAuthProvider registerSessionResourceCleanup renderSystemMessageUpdate repairJson resetApiProviders
    resetOAuthProviders resolveTranscript resolveTranscriptTools retryAssistantCall retryDelayMs
    setBedrockProviderLoader setBedrockProviderModule stream streamAnthropic streamAzureOpenAIResponses streamGoogle
    streamGoogleVertex streamMistral streamOpenAICodexResponses streamOpenAICompletions streamOpenAIResponses
    streamSimple streamSimpleAnthropic streamSimpleAzureOpenAIResponses streamSimpleGoogle streamSimpleGoogleVertex
    streamSimpleMistral streamSimpleOpenAICodexResponses streamSimpleOpenAICompletions streamSimpleOpenAIResponses
    toToolDeclaration unregisterApiProviders unregisterOAuthProvider uuidv7 validateToolArguments validateToolCall
    withClientIdentity withoutInitialSystemMessage
  `.trim().split(/\s+/),
  "pi-agent-core": `
    AGENT_TELEMETRY_SCHEMAS AI_TELEMETRY_SCHEMA Agent AgentHarness AgentHarnessError BACKGROUND_CONTEXT
    BRANCH_SUMMARY_PREFIX BRANCH_SUMMARY_SUFFIX BranchSummaryError COMPACTION_SUMMARY_PREFIX COMPACTION_SUMMARY_SUFFIX
    Closed CompactionError DEFAULT_COMPACTION_SETTINGS DEFAULT_MAX_BYTES DEFAULT_MAX_LINES ExecutionError FileError
    GREP_MAX_LINE_LENGTH HARNESS_TELEMETRY_SCHEMA HarnessClosed HarnessFault InMemorySessionRepo
    InMemoryTelemetryContext InvalidLane InvalidMessage InvalidNavigation JSONL_STORAGE_VERSION JsonlSessionRepo
    LaneBusy MemorySessionRepo NOOP_TELEMETRY_CONTEXT NoActiveOperation NoActiveRun NothingToCompact NothingToResume
    OperationMismatch Result Session SessionBranchExistsError SessionError SessionInvalidBranchError
    SessionInvariantError SessionPendingAssistantMessageError SessionUnknownTargetError SliceNotImplemented
    StorageBackedSession TODO_CONTEXT TaggedError UnknownSkill UnknownTarget UnknownTemplate agentLoop
    agentLoopContinue appendList applyShellOutputUpdate awaitWithContext bashExecutionToText branchTip
    branchTipInventoryPrefix buildSessionContext calculateContextTokens collectEntriesForBranchSummary commitWrite
    compact convertToLlm createBashTool createBranchSummaryMessage createCompactionSummaryMessage createContextKey
    createCustomMessage createEditTool createForkSnapshot createReadTool createSessionId createTimestamp
    createTypedSpanStarter createWriteTool defineTelemetrySchema deleteList deleteValue entryLabel err
    estimateContextTokens estimateTokens executeShellWithCapture findCutPoint findTurnStartIndex
    formatPromptTemplateInvocation formatSize formatSkillInvocation formatSkillsForSystemPrompt generateBranchSummary
    generateSummary generateSummaryWithUsage getEntriesToFork getFileSystemResultOrThrow getLastAssistantUsage
    getOrThrow getOrUndefined getTelemetryContext insertEntry insertUsage laneConfig laneState list
    loadPromptTemplates loadSkills loadSourcedPromptTemplates loadSourcedSkills matchError ok operationMeta
    operationPreparation operationPreparationPrefix operationResult operationScopeOf operationState operationToolArgs
    operationToolArgsPrefix operationToolMemo operationToolMemoPrefix parseCommandArgs pendingAssistantFrames
    pendingEntry pendingToolOutput pendingToolOutputPrefix prepareBranchEntries prepareCompaction prepareStorageCommit
    projectForkCurrentStateWrite reduceLaneSnapshot resolveListReadOptions runAgentLoop runAgentLoopContinue
    runToolCall sanitizeBinaryOutput serializeConversation sessionName setDefaultStreamFn setValue shouldCompact
    startAiSpan startHarnessSpan streamProxy substituteArgs toError toSession truncateHead truncateLine truncateTail
    utf8ByteLength uuidv7 validateCommittedWrites value withAbortSignal withCancel withContextValue
    withTelemetryContext withoutAbortSignal
  `.trim().split(/\s+/),
};
