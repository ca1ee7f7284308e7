;;; acp-emacs.el --- Emacs with acp.el, unmodified, in front of our program  -*- lexical-binding: t; -*-
;;
;;     emacs --batch -Q -L FOLDER_OF_ACP_EL -l acp-emacs.el PROGRAM WORK_FOLDER
;;
;; A prompt, a file that a buffer has not saved, an edit of it, permissions given and refused, a cancelled prompt, and a later
;; process that lists, loads and deletes the session.

;;; Code:

(require 'acp)
(require 'seq)

(defvar t-program (pop command-line-args-left))
(defvar t-work (file-name-as-directory (pop command-line-args-left)))
(defvar t-cwd (concat t-work "cwd/"))
(defvar t-script (concat t-work "replies.json"))
(defvar t-allow t)
(defvar t-updates nil "Updates so far, the last one first.")
(defvar t-asked 0 "Permission requests so far.")

(defun t-check (what holds &optional seen)
  "Ends Emacs unless HOLDS. WHAT and SEEN are for the message."
  (unless holds
    (message "acp-emacs: not as expected: %s: %S" what seen)
    (kill-emacs 1)))

(defun t-until (what fits)
  "Waits until FITS returns true. WHAT is for the message."
  (let ((limit (+ (float-time) 30)))
    (while (not (funcall fits))
      (t-check what (< (float-time) limit) (seq-take t-updates 5))
      (accept-process-output nil 0.01))))

(defun t-joined (kind)
  "The text of all chunks of KIND."
  (let ((chunks (seq-filter (lambda (update) (equal (map-elt update 'sessionUpdate) kind)) (reverse t-updates))))
    (mapconcat (lambda (update) (map-nested-elt update '(content text))) chunks "")))

(defun t-reply (kind value)
  "A reply of the model with one item of KIND and its VALUE."
  `((stream . ,(vector `((,kind . ,value))))))

(defun t-replies (replies)
  "Sets the REPLIES of the model for the next process."
  (with-temp-file t-script (insert (json-serialize (vconcat replies)))))

(defun t-serve (client request)
  "Answers a REQUEST of the agent with the CLIENT."
  (let-alist request
    (acp-send-response
     :client client
     :response
     (pcase .method
       ("session/request_permission"
        (setq t-asked (1+ t-asked))
        (let* ((kind (if t-allow "allow_once" "reject_once"))
               (option (seq-find (lambda (option) (equal (map-elt option 'kind) kind)) .params.options)))
          (acp-make-session-request-permission-response :request-id .id :option-id (map-elt option 'optionId))))
       ("fs/read_text_file"
        (acp-make-fs-read-text-file-response
         :request-id .id
         :content (with-current-buffer (find-file-noselect .params.path) (buffer-string))))
       ("fs/write_text_file"
        (with-current-buffer (find-file-noselect .params.path)
          (erase-buffer)
          (insert .params.content))
        (acp-make-fs-write-text-file-response :request-id .id))))))

(defun t-client ()
  "A client of a new process."
  (let ((client (acp-make-client :context-buffer (current-buffer)
                                 :command t-program
                                 :command-params (list "acp" "--model" "offline/script" "--script" t-script)
                                 :environment-variables (list (concat "HOME=" t-work "home")))))
    (acp-subscribe-to-notifications
     :client client
     :on-notification (lambda (notification)
                        (when (equal (map-elt notification 'method) "session/update")
                          (push (map-nested-elt notification '(params update)) t-updates))))
    (acp-subscribe-to-requests :client client :on-request (lambda (request) (t-serve client request)))
    (let ((opened (t-send client (acp-make-initialize-request :protocol-version 1
                                                              :client-info '((name . "acp-emacs") (version . "1"))
                                                              :read-text-file-capability t
                                                              :write-text-file-capability t))))
      (t-check "version 1" (equal (map-elt opened 'protocolVersion) 1) opened))
    client))

(defun t-begin (client request)
  "Sends a REQUEST with the CLIENT. Returns a list that gets the result or the error."
  (let ((done (list nil)))
    (acp-send-request :client client :request request
                      :on-success (lambda (result) (setcar done (list 'result result)))
                      :on-failure (lambda (error) (setcar done (list 'error error))))
    done))

(defun t-send (client request)
  "Sends a REQUEST with the CLIENT and waits for its result."
  (let ((done (t-begin client request)))
    (t-until (map-elt request :method) (lambda () (car done)))
    (t-check (map-elt request :method) (eq (caar done) 'result) (car done))
    (cadar done)))

(defun t-prompt (session text)
  "The request that sends TEXT to the SESSION."
  (acp-make-session-prompt-request :session-id session :prompt `[((type . "text") (text . ,text))]))

(make-directory t-cwd t)
(make-directory (concat t-work "home/.pi/agent") t)
(with-temp-file (concat t-work "home/.pi/agent/settings.json") (insert "{\"permissions\": {\"mode\": \"ask\"}}"))
(with-temp-file (concat t-cwd "note.txt") (insert "Buy milk.\n"))
(t-replies
 (list (t-reply 'text ["One " "two."])
       (t-reply 'tool '((name . "read") (args . ((path . "note.txt")))))
       (t-reply 'tool '((name . "edit") (args . ((path . "note.txt") (edits . [((oldText . "bread") (newText . "cheese"))])))))
       (t-reply 'text ["Cheese."])
       (t-reply 'tool '((name . "bash") (args . ((command . "echo side > refused")))))
       (t-reply 'text ["Refused."])
       '((stream . [((text . ["Endless"])) ((delay . 60)) ((text . ["never"]))]))))

(let* ((client (t-client))
       (opened (t-send client (acp-make-session-new-request :cwd t-cwd)))
       (session (map-elt opened 'sessionId))
       (buffer (find-file-noselect (concat t-cwd "note.txt"))))
  (t-check "options" (map-elt opened 'configOptions) opened)
  (let ((ended (t-send client (t-prompt session "Count"))))
    (t-check "the turn ends" (equal (map-elt ended 'stopReason) "end_turn") ended))
  (t-check "the answer in pieces" (equal (t-joined "agent_message_chunk") "One two.") t-updates)

  (with-current-buffer buffer
    (erase-buffer)
    (insert "Buy bread.\n"))
  (t-send client (t-prompt session "Replace bread"))
  (t-check "the edit is in the buffer" (equal (with-current-buffer buffer (buffer-string)) "Buy cheese.\n"))
  (t-check "the file is as it was" (equal (with-temp-buffer (insert-file-contents (concat t-cwd "note.txt")) (buffer-string)) "Buy milk.\n"))
  (t-check "permission for the edit" (equal t-asked 1) t-asked)

  (setq t-allow nil)
  (t-send client (t-prompt session "Run it"))
  (t-check "permission for the command" (equal t-asked 2) t-asked)
  (t-check "a refused command does not run" (not (file-exists-p (concat t-cwd "refused"))))

  (let ((turn (t-begin client (t-prompt session "Without end"))))
    (t-until "an answer" (lambda () (string-match-p "Endless" (t-joined "agent_message_chunk"))))
    (acp-send-notification :client client :notification (acp-make-session-cancel-notification :session-id session))
    (t-until "the end" (lambda () (car turn)))
    (t-check "cancelled" (equal (map-elt (cadar turn) 'stopReason) "cancelled") turn))
  (acp-shutdown :client client)

  (setq t-updates nil)
  (let* ((client (t-client))
         (ids (lambda () (mapcar (lambda (one) (map-elt one 'sessionId))
                                 (map-elt (t-send client (acp-make-session-list-request :cwd t-cwd)) 'sessions)))))
    (t-check "the session is listed" (member session (funcall ids)) (funcall ids))
    (t-send client (acp-make-session-load-request :session-id session :cwd t-cwd))
    (t-check "history is replayed" (string-prefix-p "Count" (t-joined "user_message_chunk")) t-updates)
    (acp-shutdown :client client))
  (let ((client (t-client)))
    (t-send client (acp-make-session-delete-request :session-id session))
    (t-check "deleted" (seq-empty-p (map-elt (t-send client (acp-make-session-list-request :cwd t-cwd)) 'sessions)))
    (acp-shutdown :client client)))
(message "ok: acp-emacs: Emacs %s with acp.el %s: prompt, buffers, permission, cancel, load, delete" emacs-version acp-package-version)

;;; acp-emacs.el ends here
